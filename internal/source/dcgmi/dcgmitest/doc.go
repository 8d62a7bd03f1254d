// Package dcgmitest gives tests a dcgmi to run: a program of that name which
// prints, fails, hangs and dies as a Scenario says, in the words and columns of
// the real one. Nothing that is shipped may import it.
//
// Install builds the program and puts a scenario beside it:
//
//	s := dcgmitest.Scenario{Version: "4.2.3", GPUs: dcgmitest.Boards(8)}
//	exe := dcgmitest.Install(t, s)
//	… run exe dmon -e 155,1001 -d 100 …
//	s.Failures = []dcgmitest.Failure{{Kind: dcgmitest.HostEngineDies}}
//	s.Write(t, dcgmitest.Beside(exe)) // the running child sees it at its next sample
//
// Layouts, texts and exit codes are those of DCGM 3.3 to 4.6. Where no source
// says how the real program behaves, the comment at that place says so.
package dcgmitest
