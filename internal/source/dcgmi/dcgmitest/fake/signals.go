package fake

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// signals answers them as dcgmi does: SIGTERM, SIGHUP and SIGQUIT end the
// process at once. So does SIGINT, until dmon samples: then it is only noted,
// and dmon looks when its sleep is over.
type signals struct {
	sampling    atomic.Bool
	interrupted atomic.Bool
	ignoreTerm  atomic.Bool
}

func handleSignals() *signals {
	s := new(signals)
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	go func() {
		for sig := range caught {
			number := sig.(syscall.Signal)
			switch {
			case number == syscall.SIGINT && s.sampling.Load():
				s.interrupted.Store(true)
			case number == syscall.SIGTERM && s.ignoreTerm.Load():
			default:
				os.Exit(128 + int(number))
			}
		}
	}()
	return s
}
