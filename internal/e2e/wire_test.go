package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// startWire starts an exporter that answers each request with these bytes and closes the
// connection.
func startWire(t *testing.T, wire string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.WriteString(c, wire)
			}
			c.Close()
		}
	}()
	return "http://" + l.Addr().String() + "/metrics"
}

// TestLineThatMayBeCut: if only the end of the connection ends an answer, 41 may have been 412.337:
// the line is neither read nor passed on, but counted.
func TestLineThatMayBeCut(t *testing.T) {
	t.Parallel()
	const cut = oneGPU + "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-1\"} 41"
	for _, passthrough := range []string{"valid", "verbatim"} {
		c := startProxy(t, itself(t), "--source="+startWire(t, "HTTP/1.0 200 OK\r\n\r\n"+cut), "--poll=0", "--passthrough="+passthrough)
		code, body := page(t, c, "/metrics")
		if code != 200 || strings.Contains(body, "DCGM_FI_DEV_POWER_USAGE") || strings.Contains(body, "\nkpulse_gpu_power_watts{") || !strings.HasPrefix(body, oneGPU) {
			t.Errorf("%s: %d\n%.600s", passthrough, code, body)
		}
		if !regexp.MustCompile(`\nkpulse_source_skipped_lines_total\{[^}]*\} 1\n`).MatchString(body) {
			t.Errorf("%s: the line is not counted", passthrough)
		}
		if n := strings.Count(c.Logged(), "may be cut short: it is left out"); n != 1 {
			t.Errorf("%s: the log reports it %d times", passthrough, n)
		}
	}
	c := startProxy(t, itself(t), "--source="+startWire(t, "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(cut))+"\r\n\r\n"+cut), "--poll=0")
	if code, body := page(t, c, "/metrics"); code != 200 || !strings.HasPrefix(body, cut+"\n# HELP kpulse_") || !regexp.MustCompile(`\nkpulse_gpu_power_watts\{[^}]*\} 41\n`).MatchString(body) {
		t.Errorf("of a known length: %d\n%.900s", code, body)
	}
}

// TestDiscoveryWithoutHost: for a request without a host, /sd must not have an empty target, which
// Prometheus cannot scrape.
func TestDiscoveryWithoutHost(t *testing.T) {
	t.Parallel()
	c := startProxy(t, itself(t), "--backend=replay")
	address := strings.TrimPrefix(c.URL, "http://")
	for _, request := range []string{"GET /sd HTTP/1.0\r\n\r\n", "GET /sd HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n"} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, request)
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if !strings.Contains(string(answer), `"targets":["`+address+`"]`) {
			t.Errorf("the answer to %q is\n%s", request, answer)
		}
	}
}
