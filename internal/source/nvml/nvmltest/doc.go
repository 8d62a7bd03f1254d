// Package nvmltest gives tests a libnvidia-ml.so.1 to load: a library of that name
// which answers, fails, hangs and loses GPUs as a Scenario says, to whatever loads
// it as it would the driver's. Nothing that is shipped may import it.
//
//	library, scenario := nvmltest.Build(t), filepath.Join(t.TempDir(), "scenario")
//	s := nvmltest.FromTruth(nvmltest.H100(8))
//	s.Write(t, scenario)
//	… run kpulse-proxy --backend=nvml with the library and ScenarioEnv=scenario …
//	s.Lost = []int{3}
//	s.Write(t, scenario) // the next call sees it
//
// A Truth is what is physically so with a board. FromTruth and Exposition say it in
// the words of NVML and of dcgm-exporter, so that what comes through the one can be
// held against what comes through the other.
//
// A process that loads a second library, from another path, goes on calling the
// first: go-nvml binds a function at its first call, for good. That is no matter to
// tests that run a program, nor to tests in one process, for all libraries of Build
// are the same, and nvmlInit asks the environment for the scenario anew. It is to
// those that want a library of BuildWithout: they must run a program.
package nvmltest
