package e2e

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// endless starts an exporter that sends beginning, and then part over and over.
func endless(t *testing.T, beginning, part string) (address string, sent *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	sent = &atomic.Int64{}
	block := []byte(strings.Repeat(part, 1+(16<<10)/len(part)))
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				var n int64
				for _, err := conn.Write([]byte(beginning)); err == nil; n += int64(len(block)) {
					_, err = conn.Write(block)
				}
				for most := sent.Load(); n > most && !sent.CompareAndSwap(most, n); most = sent.Load() {
				}
			}()
		}
	}()
	return listener.Addr().String(), sent
}

// TestEndlessHeaders: the proxy drops an exporter whose header has no end, and says why. What the
// kernel buffers counts as sent.
func TestEndlessHeaders(t *testing.T) {
	t.Parallel()
	const buffered = 8 << 20
	for name, test := range map[string]struct{ beginning, part string }{
		"lines":       {"HTTP/1.1 200 OK\r\n", "A: " + strings.Repeat("a", 60) + "\r\n"},
		"one line":    {"HTTP/1.1 200 OK\r\nA: ", "a"},
		"status":      {"HTTP/1.1 200 ", "a"},
		"early hints": {"", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"},
		"trailer":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n1\r\n\n\r\n0\r\n", "A: " + strings.Repeat("a", 60) + "\r\n"},
	} {
		for config, most := range map[string]int64{"": 1 << 20, "  http_config: {basic_auth: {username: u, password: p}}\n": 11 << 20} {
			t.Run(name+config, func(t *testing.T) {
				t.Parallel()
				address, sent := endless(t, test.beginning, test.part)
				_, flag := fed(t, "sources:\n- source: http://"+address+"/metrics\n"+config)
				c := startProxy(t, itself(t), flag, "--poll=0")
				checkShown(t, "the answer", awaitPage(t, c, "/metrics", http.StatusBadGateway, "http://"+address))
				if n := sent.Load(); n > most+buffered {
					t.Errorf("%d bytes of header were taken, want at most some %d", n, most)
				}
			})
		}
	}
}
