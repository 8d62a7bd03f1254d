package exporter

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/raw"
	"github.com/kpulse/kpulse-proxy/internal/source"
)

// TestCloseEndsRead closes from many goroutines while a Read waits for the
// header, and while one waits for the rest of the body.
func TestCloseEndsRead(t *testing.T) {
	for _, first := range []string{"", page} {
		asked := make(chan struct{})
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if first != "" {
				io.WriteString(w, first)
				w.(http.Flusher).Flush()
			}
			close(asked)
			<-r.Context().Done()
		})
		s := open(t, srv.URL, Options{Timeout: time.Minute})
		result := make(chan error)
		go func() { result <- s.Read(t.Context(), &raw.Batch{}) }()
		<-asked
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { s.Close() })
		}
		wg.Wait()
		select {
		case err := <-result:
			if !errors.Is(err, os.ErrClosed) || source.AsError(err).Failure != source.Unsupported {
				t.Errorf("read returned %v, want os.ErrClosed", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("Close did not end the Read")
		}
		if err := s.Read(t.Context(), &raw.Batch{}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a later read returned %v, want os.ErrClosed", err)
		}
	}
}

// TestCloseRacesRead closes at any point of a Read; goleak then looks for
// connections left open.
func TestCloseRacesRead(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) })
	for i := range 50 {
		s := open(t, srv.URL, Options{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				if err := s.Read(t.Context(), &raw.Batch{}); err != nil {
					if !errors.Is(err, os.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
		time.Sleep(time.Duration(i) * 20 * time.Microsecond)
		s.Close()
		wg.Wait()
	}
}
