package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
)

// Temperatures, in °C, that the exporter reports for its GPU: before the fault, during it if the
// fault leaves readings, and after it. They identify readings from before the fault.
const (
	before = 40
	during = 41
	after  = 42
)

// reading returns the page of an exporter of one GPU.
func reading(celsius int) string { return boardSamples("0", "GPU-1", celsius) }

// boardSamples returns an exporter's samples of one GPU.
func boardSamples(index, uuid string, celsius int) string {
	return fmt.Sprintf("DCGM_FI_DEV_GPU_TEMP{gpu=%q,UUID=%q} %d\nDCGM_FI_DEV_POWER_USAGE{gpu=%q,UUID=%q} 300\n", index, uuid, celsius, index, uuid)
}

// exporterAnswer is how an exporter answers a request.
type exporterAnswer = http.HandlerFunc

// fakeExporter is a dcgm-exporter whose answers faults control. It has an address of its own in
// 127.0.0.0/8, with a port that the system assigns to no other program, so it can disappear and
// come back.
type fakeExporter struct {
	address  string
	answer   atomic.Value // exporterAnswer
	requests atomic.Int64
	tls      *tls.Config      // for TLS; nil for plain HTTP
	server   *httptest.Server // nil while nothing listens
	raw      net.Listener     // instead of server, if it does not speak HTTP
}

// startedExporters counts the started exporters, for their addresses.
var startedExporters atomic.Uint32

// startExporter starts a healthy exporter.
func startExporter(t *testing.T) *fakeExporter {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	n := startedExporters.Add(1)
	e := &fakeExporter{address: fmt.Sprintf("127.%d.%d.%d:%s", 100+os.Getpid()%100, n>>8, n&0xff, port)}
	e.does(says(reading(before)))
	e.listen(t)
	t.Cleanup(e.leave)
	return e
}

// does sets the answer from now on.
func (e *fakeExporter) does(a exporterAnswer) { e.answer.Store(a) }

// listen makes the exporter listen, again or for the first time.
func (e *fakeExporter) listen(t *testing.T) {
	t.Helper()
	l := e.opens(t)
	e.server = &httptest.Server{Listener: l, Config: &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.requests.Add(1)
		e.answer.Load().(exporterAnswer)(w, r)
	})}}
	if e.tls == nil {
		e.server.Start()
		return
	}
	e.server.TLS = e.tls.Clone()
	e.server.StartTLS()
}

// secures restarts the exporter with a TLS config.
func (e *fakeExporter) secures(t *testing.T, c *tls.Config) {
	t.Helper()
	e.leave()
	e.tls = c
	e.listen(t)
}

// opens listens at the exporter's address. A child that starts at this moment may still have a copy of the listener before.
func (e *fakeExporter) opens(t *testing.T) (l net.Listener) {
	t.Helper()
	awaitTrue(t, "the address "+e.address, func() bool {
		var err error
		l, err = net.Listen("tcp", e.address)
		return err == nil
	})
	return l
}

// speaks replaces HTTP: f answers each connection from the first byte on.
func (e *fakeExporter) speaks(t *testing.T, f func(net.Conn)) {
	t.Helper()
	e.leave()
	l := e.opens(t)
	e.raw = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				f(c)
			}()
		}
	}()
}

// leave stops the exporter: connections are refused.
func (e *fakeExporter) leave() {
	if e.server != nil {
		e.server.Listener.Close() // no client comes back
		e.server.CloseClientConnections()
		e.server.Close()
		e.server = nil
	}
	if e.raw != nil {
		_ = e.raw.Close()
		e.raw = nil
	}
}

// hangUp closes all open connections.
func (e *fakeExporter) hangUp() {
	if e.server != nil {
		e.server.CloseClientConnections()
	}
}

// url returns the URL that the program reads.
func (e *fakeExporter) url() string {
	if e.tls != nil {
		return "https://" + e.address + "/metrics"
	}
	return "http://" + e.address + "/metrics"
}

// says answers with a page.
func says(text string) exporterAnswer {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// with answers with a page and headers, given as pairs of name and value.
func with(text string, headers ...string) exporterAnswer {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		_, _ = io.WriteString(w, text)
	}
}

// status answers with a status, a valid page, and headers.
func status(code int, headers ...string) exporterAnswer {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, reading(during)) // where the status allows a body
	}
}

// wire answers with these bytes and closes the connection.
func wire(text string) exporterAnswer {
	return hijack(func(c net.Conn) { _, _ = io.WriteString(c, text) })
}

// resets answers with these bytes and resets the connection.
func resets(begin string) exporterAnswer {
	return hijack(func(c net.Conn) {
		_, _ = io.WriteString(c, begin)
		_ = c.(*net.TCPConn).SetLinger(0)
	})
}

// drips answers with these bytes, then byte by byte until the client leaves.
func drips(begin string, each time.Duration) exporterAnswer {
	return hijack(func(c net.Conn) {
		for _, err := io.WriteString(c, begin); err == nil; time.Sleep(each) {
			_, err = io.WriteString(c, "#")
		}
	})
}

// hangsAfter answers with these bytes and waits until the client leaves.
func hangsAfter(begin string) exporterAnswer {
	return hijack(func(c net.Conn) {
		_, _ = io.WriteString(c, begin)
		untilItLeaves(c)
	})
}

// untilItLeaves waits until the other side closes a connection.
func untilItLeaves(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, _ = io.Copy(io.Discard, c)
}

// hijack lets f answer on the bare connection, then closes it.
func hijack(f func(net.Conn)) exporterAnswer {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		f(c)
	}
}
