package mixin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// pictured are the choices with which pages are drawn; the others are drawn with all.
var pictured = map[string][]string{
	"kpulse-gpu":       {"all", "gone GPU"},
	"kpulse-node":      {"all", "gone GPU"},
	"kpulse-namespace": {"all", "one job"},
	"kpulse-job":       {"one job"},
}

// drawn is a page for grafana/pictures/page.jsx.
type drawn struct {
	Title     string       `json:"title"`
	Variables []labelled   `json:"variables"`
	From      int64        `json:"from"` // ms
	To        int64        `json:"to"`
	Panels    []drawnPanel `json:"panels"`
	height    int
	panels    int // without rows
}

type labelled struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

type drawnPanel struct {
	rendering
	Step float64 `json:"step"` // s
}

// TestPictures draws every page, and the last of every walk, over a fleet with incidents in a headless Chromium, with Grafana's own components: 1000 and
// 1600 pixels wide, dark and light. The pictures are left in the folder KPULSE_PICTURES. It logs texts that are cut.
func TestPictures(t *testing.T) {
	slow.Test(t, "prometheus, Node.js, chromium, the font Inter: pictures of the pages")
	t.Parallel()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("KPULSE_REQUIRE_NODE") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; apt-get install chromium fonts-inter", err)
	}
	dir := installed(t, "pictures")
	build := exec.Command("npm", "run", "build")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("npm run build: %v\n%s", err, out)
	}
	f := openFleet(t)
	out := t.TempDir()
	if folder := os.Getenv("KPULSE_PICTURES"); folder != "" {
		out = folder
	}
	shoot := func(name string, of dashboard, choice string, chosen map[string][]string) {
		t.Run(name, func(t *testing.T) {
			d, err := f.draw(of, choice, chosen)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(d)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "data.js"), append([]byte("window.page = "), text...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, width := range []int{1000, 1600} {
				for _, mode := range []string{"dark", "light"} {
					picture := filepath.Join(out, fmt.Sprintf("%s-%d-%s.png", name, width, mode))
					screenshot(t, chromium, picture, "file://"+filepath.Join(dir, "page.html")+"#"+mode, width, d)
				}
			}
		})
	}
	dashed := func(words string) string { return "-" + strings.ToLower(strings.ReplaceAll(words, " ", "-")) }
	for _, name := range sorted(f.pages) {
		name, choices := strings.TrimSuffix(name, ".json"), []string{"all"}
		if of, is := pictured[name]; is {
			choices = of
		}
		for _, choice := range choices {
			file := name
			if choice != "all" {
				file += dashed(choice)
			}
			shoot(file, f.pages[name+".json"], choice, f.choices(t)[choice])
		}
	}
	r, found := newRenderer(t), &findings{}
	for _, w := range walks {
		if p, _ := f.from(t, r, found, w); p != nil {
			shoot("walk"+dashed(w.name), p.dashboard, w.name, p.chosen)
		}
	}
	f.report(t, found)
}

// draw queries a page as Grafana does.
func (f *playedFleet) draw(d dashboard, choice string, chosen map[string][]string) (*drawn, error) {
	var raw struct {
		Panels     []json.RawMessage // in the order of d
		Templating struct {
			List []struct {
				Label string
				Hide  int // 0: shown
			}
		}
	}
	text, err := os.ReadFile(filepath.Join("dashboards_out", d.UID+".json"))
	if err == nil {
		err = json.Unmarshal(text, &raw)
	}
	if err != nil {
		return nil, err
	}
	p, err := f.open(d, f.End.Add(-time.Hour), f.End, chosen)
	if err != nil {
		return nil, err
	}
	page := &drawn{Title: d.Title, From: p.from.UnixMilli(), To: p.to.UnixMilli()}
	for i, v := range d.Templating.List {
		value := "All"
		switch of, is := chosen[v.Name]; {
		case v.Type != "query" || raw.Templating.List[i].Hide > 0:
			continue
		case is:
			value = strings.Join(of, " + ")
		case !v.IncludeAll:
			value = strings.Join(p.values[v.Name][:min(1, len(p.values[v.Name]))], "")
		}
		page.Variables = append(page.Variables, labelled{raw.Templating.List[i].Label, value})
	}
	for i, of := range d.Panels {
		one, err := p.rendering(of, raw.Panels[i], choice)
		if err != nil {
			return nil, err
		}
		page.Panels = append(page.Panels, drawnPanel{one, p.step(of).Seconds()})
		if of.Type != "row" {
			page.panels++
		}
		page.height = max(page.height, 64+38*(of.GridPos.Y+of.GridPos.H)+8)
	}
	return page, nil
}

// said finds what the page writes to the console.
var said = regexp.MustCompile(`CONSOLE.*?\] "(.*)", source: `)

// screenshot draws a page.
func screenshot(t *testing.T, chromium, picture, address string, width int, d *drawn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var errs bytes.Buffer
	shoot := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
		"--enable-logging=stderr", "--virtual-time-budget=3000", "--user-data-dir="+t.TempDir(), fmt.Sprintf("--window-size=%d,%d", width, d.height), "--screenshot="+picture, address)
	shoot.Stderr = &errs
	if err := shoot.Run(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, errs.Bytes())
	}
	file, err := os.Open(picture)
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.Bytes())
	}
	defer file.Close()
	if is, err := png.DecodeConfig(file); err != nil || is.Width != width || is.Height != d.height {
		t.Errorf("%s is %+v (%v), want %d × %d", picture, is, err, width, d.height)
	}
	lines := map[string]bool{}
	for _, line := range said.FindAllStringSubmatch(errs.String(), -1) {
		lines[line[1]] = true
	}
	for _, line := range sorted(lines) {
		if t.Logf("%s: %s", filepath.Base(picture), line); strings.HasPrefix(line, "Uncaught") {
			t.Fail()
		}
	}
	if done := fmt.Sprint("drawn: ", d.panels); !lines[done] {
		t.Errorf("%s: the page did not say %q", filepath.Base(picture), done)
	}
}

// TestPicturesInREADME checks that README shows each page with a text for those who do not see it, and that the pictures are
// small.
func TestPicturesInREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, link := range regexp.MustCompile(`!\[(.*)\]\((pictures/.*)\)`).FindAllStringSubmatch(string(readme), -1) {
		if len(link[1]) < 40 {
			t.Errorf("%s has the text %q", link[2], link[1])
		}
		shown[link[2]] = true
	}
	var sum int64
	files, err := filepath.Glob("pictures/*")
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if sum += info.Size(); !shown[file] || info.Size() > 120<<10 {
			t.Errorf("%s: shown in README: %v; %d bytes, want at most 120 KiB", file, shown[file], info.Size())
		}
		delete(shown, file)
	}
	if err != nil || len(shown) > 0 || sum > 1<<20 {
		t.Errorf("%v: README shows %v, which are no files; all have %d bytes, want at most 1 MiB", err, shown, sum)
	}
	for name := range dashboards(t) {
		uid := strings.TrimSuffix(name, ".json")
		if !slices.ContainsFunc(files, func(file string) bool {
			return regexp.MustCompile(`^pictures/` + uid + `(-.*)?\.webp$`).MatchString(file)
		}) {
			t.Errorf("README has no picture of %s", uid)
		}
	}
}
