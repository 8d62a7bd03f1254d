package e2e

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/app"
)

// root is the top of the repository.
const root = "../../"

// markdown returns the Markdown pages of the repository by path.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md", "*/*/*/*.md"} {
		files, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.ToSlash(strings.TrimPrefix(file, root))] = string(text)
		}
	}
	if found["README.md"] == "" || found["deploy/helm/kpulse-proxy/README.md"] == "" {
		t.Fatalf("found %d pages, but not README.md or the chart's", len(found))
	}
	return found
}

// TestScrapeRecipes: README.md and the mixin show the same scrape jobs.
func TestScrapeRecipes(t *testing.T) {
	pages := markdown(t)
	recipe := func(page string) string {
		for _, block := range fenced.FindAllStringSubmatch(pages[page], -1) {
			if block[1] == "yaml" && strings.HasPrefix(block[2], "scrape_configs:") {
				return block[2]
			}
		}
		return "none in " + page
	}
	if readme, mixin := recipe("README.md"), recipe("mixin/README.md"); readme != mixin {
		t.Errorf("README.md:\n%s\nmixin/README.md:\n%s", readme, mixin)
	}
}

var (
	// fenced matches a block of code: its language and its lines.
	fenced = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```")
	// pageLinks matches links of the text, of pictures, and of HTML.
	pageLinks = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// unslugged matches characters that GitHub omits from the anchor of a heading.
	unslugged = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// anchors returns the anchors that GitHub gives the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		plain := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		all = append(all, strings.ReplaceAll(unslugged.ReplaceAllString(strings.ToLower(plain), ""), " ", "-"))
	}
	return all
}

// TestPagesLink: each link within the repository points to a file, and to a heading in it.
func TestPagesLink(t *testing.T) {
	all := markdown(t)
	for page, text := range all {
		for _, m := range pageLinks.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			to, err := url.Parse(m[1] + m[2])
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if to.Host != "" {
				continue
			}
			file := page
			if to.Path != "" {
				file = path.Join(path.Dir(page), to.Path)
			}
			if _, err := os.Stat(root + file); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, to)
			} else if to.Fragment != "" && !slices.Contains(anchors(all[file]), to.Fragment) {
				t.Errorf("%s links to %s, which has no such heading", page, to)
			}
		}
	}
}

// unspelled matches the parts of a page that are not English: code, comments, tags, addresses,
// words with digits or underscores, and 's after words of .spelling.
var unspelled = regexp.MustCompile("(?m:^    .*$)|`[^`\n]*\n?[^`\n]*`|(?s:<!--.*?-->)|<[^>]*>|\\]\\([^)]*\\)|https?://\\S+|\\w*[\\d_]\\w*|'s\\b|Kpulse\\w+")

// english returns the English of a page.
func english(text string) string {
	return unspelled.ReplaceAllString(fenced.ReplaceAllString(text, ""), " ")
}

// TestSpelling checks the pages with hunspell, with British spelling (-ize) and the words of our
// field in .spelling. The table of XIDs has the driver's own names.
func TestSpelling(t *testing.T) {
	t.Parallel()
	binary, err := exec.LookPath("hunspell")
	if err != nil {
		if os.Getenv("KPULSE_REQUIRE_HUNSPELL") != "" { // as CI does
			t.Fatal(err)
		}
		t.Skip("no hunspell in the PATH; apt-get install hunspell hunspell-en-gb")
	}
	unknown := func(text string) []string {
		cmd := exec.Command(binary, "-i", "UTF-8", "-d", "en_GB", "-p", root+".spelling", "-l")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	if got := unknown(english("Prometheus\n\n    indneted\n\nscrapes `a\nspna` of an exportter\n")); !slices.Equal(got, []string{"exportter"}) {
		t.Fatalf("hunspell reports %v, want only exportter", got)
	}
	prose := map[string]string{}
	for page, text := range markdown(t) {
		if page != "deploy/xids.md" {
			prose[page] = english(text)
		}
	}
	// Most of hunspell's time is its start: it reads all pages at once.
	words := unknown(strings.Join(slices.Collect(maps.Values(prose)), "\n\n"))
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		var pages []string
		for page, text := range prose {
			if strings.Contains(text, word) {
				pages = append(pages, page)
			}
		}
		t.Errorf("%q is misspelled, or belongs in .spelling; see %s", word, strings.Join(pages, ", "))
	}
}

// others are programs of others that pages name, and why TestPagesCommands does not run them, or which test does.
var others = map[string]string{
	"apt-ftparchive": "TestAptRecipe", "apt-get": "TestAptRecipe", "gpg": "TestAptRecipe", "for": "a loop of the shell", "echo": "TestAptRecipe, TestNHC",
	"dcgm-exporter": "needs GPUs; TestReal… run it on a mock driver", "helm": "TestPagesHelm", "jb": "needs the network",
	"kubectl": "needs a cluster: TestKubernetes…", "mkfifo": "TestKernelLog", "promtool": "needs a Prometheus with days of readings",
	"sbatch": "needs a cluster: TestSlurm",
	"ssh":    "needs other machines", "systemctl": "needs systemd: TestPackages", "systemd-run": "needs systemd", "time": "measures only",
}

// TestPagesCommands: programs accept the commands on the pages. Our commands run with existing
// files and addresses instead of the page's; a server shows its configuration and exits. Make
// targets, Go packages and files to install must exist, and requested paths must be served.
func TestPagesCommands(t *testing.T) {
	t.Parallel()
	exporter := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(exporter.Close)
	demo := startProxy(t, itself(t), "--backend=replay")
	x := pageCommands{exporter: exporter.URL, demo: demo, dir: t.TempDir()}
	for name, text := range map[string]string{
		"run.csv":    "timestamp,gpu_id,model,gpu_util_pct\n2026-01-01T00:00:00Z,0,NVIDIA H100,50\n",
		"config.yml": "health: {pcie_replay: off}\n", "counters.csv": "DCGM_FI_DEV_GPU_UTIL, gauge, utilization\n",
		"node.yml": "groups: []\n",
	} {
		if err := os.WriteFile(filepath.Join(x.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(x.dir, "kmsg"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, unfenced := 0, 0
	for page, text := range markdown(t) {
		for _, block := range fenced.FindAllStringSubmatch(text, -1) {
			for _, line := range commandsOf(block[1], block[2]) {
				if x.check(t, page, line) {
					ours++
				}
			}
		}
		for _, block := range indented.FindAllString(fenced.ReplaceAllString(text, ""), -1) {
			for _, line := range commandsOf("sh", block) {
				x.check(t, page, line)
				unfenced++
			}
		}
	}
	tests := command(t, "sh", "-c", "cat *_test.go | grep -o '^func Test[A-Za-z]*'")
	for program, why := range others {
		for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(why, -1) {
			if !strings.Contains(tests, "func "+name) {
				t.Errorf("%s: there is no %s", program, name)
			}
		}
	}
	if ours < 15 || unfenced < 10 {
		t.Errorf("found only %d commands of ours, and %d in indented blocks", ours, unfenced)
	}
}

// indented matches a line of an indented block that is a command.
var indented = regexp.MustCompile(`(?m)^    (?:KPULSE_\w+=\S+ )?(?:\./)?(?:kpulse-proxy|make|go|helm|kubectl|docker|curl|install|systemctl|systemd-run|promtool|deploy/\S+) .*$`)

// commandsOf returns the commands of a block: all lines of a script, without comments, or the lines
// of a session after a prompt.
func commandsOf(language, block string) []string {
	var all []string
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		prompted, isPrompted := strings.CutPrefix(line, "$ ")
		switch {
		case isPrompted:
			line = prompted
		case language == "sh":
		case language == "" && (strings.HasPrefix(line, "kpulse-proxy --") || strings.HasPrefix(line, "curl ")):
		default:
			continue
		}
		line, _, _ = strings.Cut(" "+line, " #")
		for part := range strings.SplitSeq(line, " && ") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

// pageCommands is the environment in which commands of pages run.
type pageCommands struct {
	exporter, dir string
	demo          *child
}

// check tests a command, and reports whether it is ours.
func (x pageCommands) check(t *testing.T, page, line string) bool {
	t.Helper()
	simple, _, _ := strings.Cut(line, " | ")
	simple, _, _ = strings.Cut(simple, " > ")
	words := strings.Fields(strings.TrimSuffix(simple, "&"))
	for len(words) > 0 && strings.Contains(words[0], "=") { // a leading variable
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "go" && words[1] == "run" {
		words = words[2:]
	}
	switch program := words[0]; {
	case strings.HasSuffix(program, "kpulse-proxy"):
		x.ours(t, page, words[1:])
		return true
	case program == "make":
		if err := exec.Command("make", "-n", "-C", filepath.Join(root, path.Dir(page)), words[1]).Run(); err != nil {
			t.Errorf("%s: %s: %v", page, line, err)
		}
	case program == "curl":
		for _, word := range words {
			if strings.Contains(word, ":9401") {
				x.served(t, page, word)
			}
		}
	case program == "go", program == "docker", program == "install", program == "sudo":
		for _, file := range words[1:] {
			if file = strings.TrimSuffix(file, "/..."); strings.HasPrefix(file, "./") || strings.HasPrefix(file, "deploy/") {
				if _, err := os.Stat(root + file); err != nil {
					t.Errorf("%s: %s: %v", page, line, err)
				}
			}
		}
	case strings.HasPrefix(program, "deploy/"):
		if info, err := os.Stat(root + program); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s: %s: not a program: %v", page, line, err)
		}
	case others[program] != "":
	default:
		t.Errorf("%s: %q is not tested", page, line)
	}
	return false
}

// served requests the path of an address from the demo.
func (x pageCommands) served(t *testing.T, page, address string) {
	t.Helper()
	_, rest, _ := strings.Cut(strings.Trim(address, "'"), ":")
	rest = strings.TrimPrefix(rest, "//")
	_, rest, _ = strings.Cut(rest, "/")
	resp, err := http.Get(x.demo.URL + "/" + rest)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound && !strings.HasPrefix(rest, "api/v1/processes") { // wants GPUs of this machine
		t.Errorf("%s: %s is %s", page, address, resp.Status)
	}
}

// ours runs the program. Instead of serving, it shows its settings and exits.
func (x pageCommands) ours(t *testing.T, page string, args []string) {
	t.Helper()
	files := map[string]string{"check config FILE": "config.yml", "check counters FILE": "counters.csv", "check rules FILE…": "node.yml", "check rules node.yml": "node.yml"}
	if file, ok := files[strings.Join(args, " ")]; ok {
		args = []string{args[0], args[1], filepath.Join(x.dir, file)}
	}
	for i, arg := range args {
		arg = strings.NewReplacer("http://localhost:9400", x.exporter, "http://node:9400", x.exporter,
			"/tmp/kmsg", filepath.Join(x.dir, "kmsg"), "run.csv", filepath.Join(x.dir, "run.csv"), "/run/kpulse/", x.dir+"/",
			"http://NODE:9401", x.demo.URL, "INDEX", "0", "CODE", "79").Replace(arg)
		args[i] = arg
	}
	want := []int{0}
	switch {
	case len(args) == 0 || strings.HasPrefix(args[0], "-"):
		args = append(args, "--config.show")
	case args[0] == "doctor": // of a machine without GPUs
		want = []int{0, 1}
	case args[0] == "check" && args[1] == "health":
		if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--url=") }) {
			args = append(args, "--url="+x.demo.URL)
		}
		want = []int{0, 1, 2}
	case args[0] == "report": // of a job that the demo does not have
		args, want = append(slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--prometheus.url=") }), "--url="+x.demo.URL), []int{3}
	}
	var stdout, stderr bytes.Buffer
	if code := app.Run(args, &stdout, &stderr); !slices.Contains(want, code) {
		t.Errorf("%s: kpulse-proxy %s: exit %d: %s", page, strings.Join(args, " "), code, &stderr)
	}
}
