package e2e

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// What a release consists of, as far as it can be checked without one.

// stamped runs a script of deploy/packages as make release does, for a fictitious version.
func stamped(t *testing.T, script string, args ...string) {
	t.Helper()
	cmd := exec.Command(script, args...)
	cmd.Env = append(os.Environ(), stamps...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", script, args, err, out)
	}
}

// TestBuildSharesTheCacheOfGoRun: make build compiles packages with no flag that go run does not have: only those of the
// linker differ. Releases trim paths and are static.
func TestBuildSharesTheCacheOfGoRun(t *testing.T) {
	t.Parallel()
	build := regexp.MustCompile(`-ldflags '[^']*'|-o '[^']*'|-buildvcs=false`)
	for target, want := range map[string]string{"build": "go build ./cmd/kpulse-proxy", "bundle": "CGO_ENABLED=0 go build -trimpath ./cmd/kpulse-proxy"} {
		cmd := exec.Command("make", "-n", "--no-print-directory", target, "DIR=/nowhere")
		cmd.Dir = top
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "go build") {
				found = strings.Join(strings.Fields(build.ReplaceAllString(line, "")), " ")
			}
		}
		if found != want {
			t.Errorf("make %s runs %q, want %q", target, found, want)
		}
	}
}

// TestChartHasItsFiles: the chart contains no links, which Flux drops, and its copies equal their sources.
func TestChartHasItsFiles(t *testing.T) {
	t.Parallel()
	sources := map[string]string{"values.yaml": chart + "/values.yaml", "rbac.yaml": top + "/deploy/kubernetes/rbac.yaml",
		"rules.yaml": top + "/mixin/prometheus_rules.yaml", "alerts.yaml": top + "/mixin/prometheus_alerts.yaml"}
	dashboards, err := filepath.Glob(top + "/mixin/dashboards_out/*.json")
	if err != nil || len(dashboards) < 5 {
		t.Fatal(dashboards, err)
	}
	for _, file := range dashboards {
		sources["dashboards/"+filepath.Base(file)] = file
	}
	for name, source := range sources {
		want, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(chart, "files", name)); err != nil || string(got) != string(want) {
			t.Errorf("files/%s of the chart is not %s (%v); run make chart", name, source, err)
		}
	}
	err = filepath.WalkDir(chart, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !entry.Type().IsRegular() {
			t.Errorf("%s is a link", path)
		}
		if name, inside := strings.CutPrefix(filepath.ToSlash(path), filepath.ToSlash(chart)+"/files/"); inside && !entry.IsDir() && sources[name] == "" {
			t.Errorf("files/%s of the chart has no source; run make chart", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ourVersion matches a version beside the name of one of our files, images or charts, the tag of an image, and the fields
// of a chart.
var ourVersion = regexp.MustCompile(`(?:kpulse[-_]proxy(?:-nvml|-operator)?[:@_-]|(?:\btag|newTag)(?:=|: *"?))(?:v?\d+\.[\w.-]*|latest\b)|(?m:^(?:appVersion|version): *(\S+)$)`)

// TestNoVersionStrays: no file names a version of ours: a release takes it from its tag, and the files of a checkout
// say that they belong to none. Charts and images have the version from one field of the chart.
func TestNoVersionStrays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"image: ghcr.io/kpulse/kpulse-proxy:v0.1.0": "kpulse-proxy:v0.1.0", "a kpulse-proxy-0.1.0.tgz b": "kpulse-proxy-0.1.0.tgz",
		"appVersion: 0.2": "appVersion: 0.2", "kpulse-proxy:VERSION-nvml": "", "--set image.tag=VERSION": "", "--set image.tag=v0.1.0,mode=dcgm": "tag=v0.1.0",
		"{newTag: 0.1.0}": "newTag: 0.1.0", "image: {tag: \"v0.1.0\"}": "tag: \"v0.1.0", "docker run kpulse-proxy:latest": "kpulse-proxy:latest",
	} {
		if got := ourVersion.FindString(text); got != want {
			t.Fatalf("in %q the test finds %q, want %q", text, got, want)
		}
	}
	allowed := map[string]bool{"appVersion: unreleased": true, "version: 0.0.0": true, "kpulse-proxy-0.0.0": true}
	files := 0
	for _, folder := range []string{"README.md", "Makefile", "Dockerfile", "cmd", "deploy", "mixin", "rules", ".github", ".ci"} {
		err := filepath.WalkDir(filepath.Join(top, folder), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && entry.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".sum") || strings.HasSuffix(path, ".png") || strings.HasSuffix(path, ".webp") {
				return err
			}
			text, err := os.ReadFile(path)
			files++
			for _, found := range ourVersion.FindAllString(string(text), -1) {
				if !allowed[found] && (filepath.Base(path) == "Chart.yaml" || !strings.Contains(found, "ersion: ")) {
					t.Errorf("%s names %q, which nobody may have built", path, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(chart + "/Chart.yaml"); err != nil || files < 100 || !strings.Contains(string(text), "\nversion: 0.0.0\nappVersion: unreleased\n") {
		t.Errorf("of %d files, Chart.yaml is\n%s", files, text)
	}
}

// TestWorkflowsPinWhatTheyUse: each action is pinned to a commit, with its version beside it, and each script is one that
// a shell accepts and whose targets of make exist.
func TestWorkflowsPinWhatTheyUse(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(top + "/.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	pinned := regexp.MustCompile(`(?m)uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	if uses := strings.Count(string(text), "uses: "); uses < 5 || len(pinned.FindAll(text, -1)) != uses {
		t.Errorf("of %d actions, these are pinned: %q", uses, pinned.FindAll(text, -1))
	}
	var workflow struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil || workflow.Permissions == nil || len(workflow.Permissions) != 0 {
		t.Fatalf("%v; all jobs may %v", err, workflow.Permissions)
	}
	makes := regexp.MustCompile(`\bmake ([a-z-]+)`)
	ran := map[string]bool{}
	for name, job := range workflow.Jobs {
		if job.Permissions == nil {
			t.Errorf("%s: its permissions are not limited", name)
		}
		for _, step := range job.Steps {
			if out, err := exec.Command("bash", "-n", "-c", step.Run).CombinedOutput(); err != nil {
				t.Errorf("%s: %v %s:\n%s", name, err, out, step.Run)
			}
			for _, m := range makes.FindAllStringSubmatch(step.Run, -1) {
				ran[m[1]] = true
				if err := exec.Command("make", "-C", top, "-n", m[1]).Run(); err != nil {
					t.Errorf("%s: make %s: %v", name, m[1], err)
				}
			}
		}
	}
	if !ran["release"] || !ran["image"] {
		t.Errorf("it makes only %v", ran)
	}
}

// TestFormula: the formula names each platform's archive, with its checksum.
func TestFormula(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sums := map[string]string{"linux-amd64": "", "linux-arm64": "", "darwin-amd64": "", "darwin-arm64": ""}
	for platform := range sums {
		file := "kpulse-proxy-" + aVersion + "." + platform + ".tar.gz"
		writeFiles(t, dir, map[string]string{file: platform})
		sums[platform], _, _ = strings.Cut(command(t, "sha256sum", filepath.Join(dir, file)), " ")
	}
	stamped(t, top+"/deploy/packages/formula", dir)
	text, err := os.ReadFile(dir + "/kpulse-proxy.rb")
	if err != nil || strings.Contains(string(text), "@") {
		t.Errorf("%v; not all is filled in:\n%s", err, text)
	}
	for platform, sum := range sums {
		want := "kpulse-proxy/releases/download/" + aVersion + "/kpulse-proxy-" + aVersion + "." + platform + ".tar.gz\"\n      sha256 \"" + sum + "\"\n"
		if !strings.Contains(string(text), want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if ruby, err := exec.LookPath("ruby"); err == nil {
		command(t, ruby, "-c", dir+"/kpulse-proxy.rb")
	}
}

// TestWheel installs a wheel with pip from a folder, without a network, and runs the program that it contains.
func TestWheel(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-m", "pip", "--version").Run() != nil {
		t.Skip("no python3 with pip in the PATH")
	}
	dir := t.TempDir()
	bundle := filepath.Join(dir, "bundle")
	writeFiles(t, bundle, map[string]string{"kpulse-proxy": "#!/bin/sh\necho \"kpulse-proxy, called as $0 $*\"\n", "licenses/LICENSE": "one", "licenses/THIRD-PARTY": "all"})
	wheel := filepath.Join(dir, "wheel")
	command(t, "go", "build", "-o", wheel, top+"/deploy/packages/wheel")
	for version, want := range map[string]string{"v0.1.0": "0.1.0", aVersion: "1.2.3rc4", "v0.1.0-5-g41696b22-dirty": "0.1.0+5.g41696b22.dirty", "41696b22": "0+41696b22"} {
		dist := filepath.Join(dir, version)
		writeFiles(t, dist, map[string]string{"again/none": ""})
		stamped(t, wheel, bundle, "linux-amd64", version, dist)
		stamped(t, wheel, bundle, "linux-amd64", version, dist+"/again")
		command(t, "cmp", only(t, dist, "*.whl"), only(t, dist+"/again", "*.whl"))
		pip := exec.Command(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--pre",
			"--find-links="+dist, "--target="+dist+"/site", "--only-binary=:all:", "--platform=manylinux2014_x86_64", "kpulse-proxy=="+want)
		pip.Env = append(os.Environ(), "PIP_CONFIG_FILE=/dev/null")
		if out, err := pip.CombinedOutput(); err != nil {
			t.Fatalf("pip: %v\n%s", err, out)
		}
		if out := command(t, dist+"/site/bin/kpulse-proxy", "--tui"); !strings.HasPrefix(out, "kpulse-proxy, called as ") || !strings.HasSuffix(strings.TrimSpace(out), "--tui") {
			t.Errorf("%s: the program says %q", version, out)
		}
		record := command(t, python, "-m", "zipfile", "-l", only(t, dist, "*.whl"))
		if rows := command(t, "cat", only(t, dist, "site/kpulse_proxy-*.dist-info/RECORD")); strings.Count(record, "kpulse_proxy-"+want) != 6 || strings.Count(rows, "sha256=") < 5 {
			t.Errorf("%s: of the files\n%s\nRECORD has\n%s", version, record, rows)
		}
	}
}

// TestAptRecipe makes an index of a package by the commands on the page, and has apt install it from there as a node would,
// into a root of its own.
func TestAptRecipe(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"apt-ftparchive", "gpg", "dpkg-deb", "apt-get"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err, "; apt-get install apt-utils gpg dpkg-dev")
		}
	}
	page, err := os.ReadFile(top + "/deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "**An apt index**")
	blocks := fenced.FindAllStringSubmatch(recipe, 2)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"deb/DEBIAN/control": "Package: kpulse-proxy\nVersion: 1.2.3\nArchitecture: all\nMaintainer: us <us@example.com>\nDescription: a test\n",
		"deb/usr/bin/kpulse-proxy": "", "root/etc/apt/sources.list.d/none": "", "root/etc/apt/keyrings/none": "", "root/var/lib/dpkg/status": "",
		"root/var/lib/apt/lists/partial/none": "", "root/var/cache/apt/archives/partial/none": "", "gnupg/none": "", "dist/none": ""})
	command(t, "dpkg-deb", "--root-owner-group", "--build", dir+"/deb", dir+"/dist/kpulse-proxy_1.2.3_all.deb")
	run := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-euc", "cd "+dir+"/dist\n"+script)
		cmd.Env = append(os.Environ(), "GNUPGHOME="+dir+"/gnupg", "APT_CONFIG=/dev/null", "LC_ALL=C")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	run("chmod 700 $GNUPGHOME && gpg --batch --quiet --passphrase '' --quick-generate-key us@example.com rsa2048 sign never")
	defer exec.Command("gpgconf", "--homedir", dir+"/gnupg", "--kill", "all").Run()
	run(blocks[0][2])
	server := httptest.NewServer(http.FileServer(http.Dir(dir + "/dist")))
	defer server.Close()
	node := strings.NewReplacer("https://packages.example.com/kpulse-proxy", server.URL, "/etc/apt/", dir+"/root/etc/apt/",
		"apt-get ", "apt-get -o Dir="+dir+"/root -o Dir::State::status="+dir+"/root/var/lib/dpkg/status -o APT::Sandbox::User=root -o APT::Architecture=amd64 ",
		"install -y", "install -y --download-only").Replace(blocks[1][2])
	run(node)
	only(t, dir, "root/var/cache/apt/archives/kpulse-proxy_1.2.3_all.deb")
}

// TestTroubleshootingQuotesTheProgram: the words of the program on the page are in its sources.
func TestTroubleshootingQuotesTheProgram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(top + "/deploy/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for words, file := range map[string]string{
		"connection refused": "source/exporter/explain.go", "no answer within": "source/exporter/explain.go", "point the source at the exporter's /metrics": "source/exporter/explain.go",
		"over the limit": "source/exporter/explain.go", "there is no pod of an exporter": "holders/discovery.go", "profiling_stalled": "canonical/condition.go",
		"gpu_sm_active_ratio": "canonical/field.go", "min-coverage": "settings/table.go", "passthrough": "settings/table.go",
	} {
		source, err := os.ReadFile(top + "/internal/" + file)
		if err != nil || !strings.Contains(string(page), words) || !strings.Contains(string(source), strings.TrimSuffix(strings.TrimPrefix(words, "gpu_"), "_ratio")) {
			t.Errorf("the page or %s lacks %q: %v", file, words, err)
		}
	}
}

// TestImageHasItsFiles: .dockerignore, which leaves out all but what it names, leaves in what the Dockerfile copies: no image
// can be built otherwise.
func TestImageHasItsFiles(t *testing.T) {
	t.Parallel()
	dockerfile, err := os.ReadFile(top + "/Dockerfile")
	ignored, err2 := os.ReadFile(top + "/.dockerignore")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, copied := range regexp.MustCompile(`(?m)^COPY ([^-\n].*) \S+$`).FindAllStringSubmatch(string(dockerfile), -1) {
		for file := range strings.FieldsSeq(copied[1]) {
			if files++; file != "." && !strings.Contains(string(ignored), "\n!"+file+"\n") {
				t.Errorf(".dockerignore leaves out %s", file)
			}
		}
	}
	if files < 5 {
		t.Errorf("of %d files", files)
	}
}
