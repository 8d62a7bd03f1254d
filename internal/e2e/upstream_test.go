package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

// upstream is an exporter for tests.
type upstream struct {
	url  string
	stop func()
}

// startUpstream serves body at /metrics, and misbehaviours at their paths.
func startUpstream(body func() ([]byte, error)) *upstream {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		b, err := body()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Write(b)
	})
	quit := make(chan struct{})
	for path, misbehave := range misbehaviours {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { misbehave(w, r, quit) })
	}
	server := httptest.NewServer(mux)
	return &upstream{url: server.URL, stop: sync.OnceFunc(func() {
		close(quit)
		server.CloseClientConnections()
		server.Close()
	})}
}

const oneGPU = "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-1\"} 40\n"

// misbehaviours are special answers of an upstream, by path. The fault suite has its failures.
var misbehaviours = map[string]func(w http.ResponseWriter, r *http.Request, quit <-chan struct{}){
	"/slow": func(_ http.ResponseWriter, r *http.Request, quit <-chan struct{}) {
		select {
		case <-r.Context().Done():
		case <-quit:
		}
	},
	"/gzip": func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(gzipped([]byte(oneGPU)))
	},
	"/huge": func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
		block := bytes.Repeat([]byte(oneGPU), 1<<14)
		for sent := 0; sent < 200<<20 && r.Context().Err() == nil; sent += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	},
	"/events": func(w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) { fmt.Fprint(w, `{"events": []}`) }, // as a proxy without any
	"/wait": func(w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
		ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
		time.Sleep(time.Duration(ms) * time.Millisecond)
		fmt.Fprint(w, oneGPU)
	},
}

func gzipped(b []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	z.Write(b)
	z.Close()
	return buf.Bytes()
}

// reverseProxyMain is the baseline of the benchmarks: the standard library's reverse proxy in its
// own process, which logs its address like ours.
func reverseProxyMain() {
	target, err := url.Parse(os.Args[1])
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(httputil.NewSingleHostReverseProxy(target))
	fmt.Fprintf(os.Stderr, "msg=\"Listening on\" address=%s\n", server.Listener.Addr())
	select {}
}
