package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// edge serves the pages of proxies that read many nodes, split into a page per node, as if each
// node had a proxy: results of rules are only on the page of all sources. The paths are those of
// exporters.
type edge struct {
	pages atomic.Pointer[map[string][]byte]
}

func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	node, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	pages := e.pages.Load()
	if pages == nil || len((*pages)[node]) == 0 {
		http.Error(w, "not yet", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write((*pages)[node])
}

// run scrapes the proxies until ctx ends.
func (e *edge) run(ctx context.Context, interval time.Duration, proxies []*child) {
	for ticker := time.NewTicker(interval); ; {
		pages := map[string]*bytes.Buffer{}
		for _, p := range proxies {
			if res, err := get(ctx, http.MethodGet, "http://"+p.address+"/metrics"); err == nil {
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err == nil && res.StatusCode == http.StatusOK {
					split(string(body), pages)
				}
			}
		}
		all := map[string][]byte{}
		for node, page := range pages {
			all[node] = page.Bytes()
		}
		e.pages.Store(&all)
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
		}
	}
}

var nodeName = regexp.MustCompile(`node-[0-9]{4}`)

// split adds the lines of a page to those of their nodes; lines of no node are added to each.
func split(page string, pages map[string]*bytes.Buffer) {
	var head, common string
	comment := false              // the previous line was one
	headed := map[string]string{} // last head on a node's page
	mine := map[string]bool{}
	for line := range strings.Lines(page) {
		before := comment
		comment = strings.HasPrefix(line, "#")
		switch node := nodeName.FindString(line); {
		case comment && before:
			head += line
		case comment:
			head = line
		case node == "":
			common += head + line
			head = ""
		default:
			if pages[node] == nil {
				pages[node] = &bytes.Buffer{}
			}
			if mine[node] = true; headed[node] != head {
				headed[node] = head
				pages[node].WriteString(head)
			}
			pages[node].WriteString(line)
		}
	}
	for node := range mine {
		pages[node].WriteString(common)
	}
}
