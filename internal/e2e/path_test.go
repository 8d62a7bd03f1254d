package e2e

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/compute"
	"github.com/kpulse/kpulse-proxy/internal/expose"
	"github.com/kpulse/kpulse-proxy/internal/pipeline"
	"github.com/kpulse/kpulse-proxy/internal/raw/rawtest"
	"github.com/kpulse/kpulse-proxy/internal/source/exporter"
	"github.com/kpulse/kpulse-proxy/internal/translate"
)

// samplePath are the functions that a sample of a steady scrape passes from ServeHTTP to the wire,
// each with the one that calls it.
var samplePath = []struct{ function, caller string }{
	{"expose.metrics.ServeHTTP", ""},
	{"expose.readAll", "expose.metrics.ServeHTTP"},
	{"pipeline.Pipeline.Read", "expose.readAll"},
	{"pipeline.Pipeline.readFor", "pipeline.Pipeline.Read"},
	{"exporter.Source.Fetch", "pipeline.Pipeline.readFor"},
	{"exporter.web.fetch", "exporter.Source.Fetch"},
	{"exporter.bodyReader.read", "exporter.web.fetch"},
	{"exporter.Source.Scan", "pipeline.Pipeline.readFor"},
	{"raw.Scanner.Scan", "exporter.Source.Scan"},
	{"exposition.ReadValue", "raw.Scanner.Scan"},
	{"exposition.plainDecimal", "exposition.ReadValue"},
	{"pipeline.Pipeline.conclude", "pipeline.Pipeline.readFor"},
	{"translate.Translator.Translate", "pipeline.Pipeline.conclude"},
	{"translate.Translator.fill", "translate.Translator.Translate"},
	{"translate.rule.read", "translate.Translator.fill"},
	{"expose.renderer.write", "expose.metrics.ServeHTTP"},
	{"expose.deviceFamily.write", "expose.renderer.write"},
	{"exposition.AppendFloat", "expose.deviceFamily.write"},
	{"expose.buffer.flush", "expose.deviceFamily.write"},
	{"expose.client.Write", "expose.buffer.flush"},
}

// onPath are our functions on the stacks at which a sample was seen.
type onPath struct {
	mu   sync.Mutex
	seen map[string]bool
}

var closure = regexp.MustCompile(`(\.func\d+|\.\d+)+$|-fm$`)

// note adds the functions of the caller's stack, up to ServeHTTP.
func (p *onPath) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name, ours := strings.CutPrefix(f.Function, "github.com/kpulse/kpulse-proxy/internal/")
		if ours && !strings.HasPrefix(name, "e2e") {
			name = closure.ReplaceAllString(name[strings.LastIndexByte(name, '/')+1:], "")
			p.seen[strings.NewReplacer("(*", "", ")", "").Replace(name)] = true
		}
		if strings.HasSuffix(f.Function, "(*metrics).ServeHTTP") {
			return
		}
	}
}

// noted is a client, an upstream and its body, which note who uses them.
type noted struct {
	path *onPath
	body []byte
	http.ResponseWriter
	io.Reader
}

func (n *noted) RoundTrip(r *http.Request) (*http.Response, error) {
	body := &noted{path: n.path, Reader: bytes.NewReader(n.body)}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, ContentLength: int64(len(n.body)), Request: r}, nil
}

func (n *noted) Read(b []byte) (int, error)  { n.path.note(); return n.Reader.Read(b) }
func (n *noted) Close() error                { return nil }
func (n *noted) Header() http.Header         { return http.Header{} }
func (n *noted) WriteHeader(int)             {}
func (n *noted) Write(b []byte) (int, error) { n.path.note(); return len(b), nil }

// TestPathOfASample: a sample passes at most 20 functions. Those on the stacks where it is read from
// the upstream, judged and written to the client are in the table, and each function of the table
// is called by the one that it names.
func TestPathOfASample(t *testing.T) {
	if len(samplePath) > 20 {
		t.Errorf("a sample passes %d functions, want at most 20: remove a layer that adds nothing", len(samplePath))
	}
	path := &onPath{seen: map[string]bool{}}
	scrapeInProcess(t, path)
	for name := range path.seen {
		if !slices.ContainsFunc(samplePath, func(row struct{ function, caller string }) bool { return row.function == name }) {
			t.Errorf("a sample also passes %s", name)
		}
	}
	for _, must := range []string{"expose.deviceFamily.write", "exporter.bodyReader.read", "pipeline.Pipeline.conclude"} {
		if !path.seen[must] {
			t.Errorf("no sample passes %s", must)
		}
	}
	for _, row := range samplePath[1:] {
		if !calls(t, row.caller, row.function) {
			t.Errorf("%s does not call %s", row.caller, row.function)
		}
	}
}

// scrapeInProcess serves one scrape of an exporter.
func scrapeInProcess(t *testing.T, path *onPath) {
	t.Helper()
	upstream := &noted{path: path, body: rawtest.Body(112, 60, 1)}
	source, err := exporter.New("http://exporter/metrics", exporter.Options{Client: &http.Client{Transport: upstream}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	translator, err := translate.New(translate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	judge, err := compute.New(compute.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.New(pipeline.Options{
		Source: source, Translator: translator, Judge: judge, Logger: slog.New(slog.DiscardHandler), Timeout: time.Minute,
		Attribute: func(*canonical.Frame) { path.note() },
	})
	handler, err := expose.New(expose.Options{Sources: expose.NewSet(p), MaxRequests: 1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	handler.ServeHTTP(&noted{path: path}, r)
}

// calls reports whether the body of a function, such as raw.Scanner.Scan, has a call by the name of
// another.
func calls(t *testing.T, caller, callee string) bool {
	t.Helper()
	folder, name, _ := strings.Cut(caller, ".")
	if folder == "exporter" {
		folder = "source/exporter"
	}
	files, err := filepath.Glob("../" + folder + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", caller, err)
	}
	called := callee[strings.LastIndexByte(callee, '.')+1:]
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && declared(f) == name && callsNamed(f, called) {
				return true
			}
		}
	}
	return false
}

// declared returns the name of a function, with its receiver's type in front.
func declared(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, is := receiver.(*ast.StarExpr); is {
		receiver = star.X
	}
	if id, is := receiver.(*ast.Ident); is {
		return id.Name + "." + f.Name.Name
	}
	return ""
}

func callsNamed(f *ast.FuncDecl, name string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is {
			switch to := call.Fun.(type) {
			case *ast.Ident:
				found = found || to.Name == name
			case *ast.SelectorExpr:
				found = found || to.Sel.Name == name
			}
		}
		return true
	})
	return found
}
