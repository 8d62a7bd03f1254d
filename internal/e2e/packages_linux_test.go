package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// TestPackages checks the output of `make release` with the tools of those who install it: apt and
// dpkg in a Debian of its own, systemd-analyze there, rpm, tar, man and sha256sum.
func TestPackages(t *testing.T) {
	debian := aDebian(t, "KPULSE_REQUIRE_PACKAGES", "mmdebstrap", "rpm", "xz")
	dist := filepath.Join(t.TempDir(), "dist")
	platform := "linux-" + runtime.GOARCH
	command(t, "make", append([]string{"-C", top, "release", "DIST=" + dist, "PLATFORMS=" + platform}, stamps...)...)

	command(t, "sh", "-c", "cd "+dist+" && sha256sum --check --strict sha256sums.txt")
	if renamed, err := filepath.Glob(dist + "/*~*"); err != nil || len(renamed) > 0 {
		t.Errorf("GitHub would rename %v", renamed)
	}
	t.Run("archive", func(t *testing.T) { checkArchive(t, only(t, dist, "*."+platform+".tar.gz")) })
	t.Run("sbom", func(t *testing.T) {
		checkSBOM(t, only(t, dist, "*."+platform+".cdx.json"), only(t, dist, "*."+platform+".tar.gz"))
	})
	t.Run("rpm", func(t *testing.T) { checkRPM(t, only(t, dist, "*.rpm")) })
	t.Run("deb", func(t *testing.T) { checkDeb(t, debian, only(t, dist, "*.deb")) })
}

// aDebian returns the archive of a Debian root that KPULSE_DEBIAN names. If that, root or one of
// the programs is missing, the test is skipped, or fails if the variable require is set, as in CI.
func aDebian(t *testing.T, require string, programs ...string) (archive string) {
	t.Helper()
	slow.Test(t, "KPULSE_DEBIAN, which make debian makes; as root")
	missing := ""
	if archive = os.Getenv("KPULSE_DEBIAN"); archive == "" {
		missing = "KPULSE_DEBIAN names no archive of a Debian; make e2e-image and make e2e-packages make one"
	} else if os.Getuid() != 0 {
		missing = "only root can change into another root"
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = "no " + program + " in the PATH; apt-get install buildah mmdebstrap rpm xz-utils"
		}
	}
	switch {
	case missing != "" && os.Getenv(require) != "":
		t.Fatal(missing)
	case missing != "":
		t.Skip(missing)
	}
	return archive
}

// checkArchive unpacks an archive and runs the program in it.
func checkArchive(t *testing.T, archive string) {
	dir := t.TempDir()
	command(t, "tar", "-xzf", archive, "-C", dir)
	program := only(t, dir, "*/kpulse-proxy")
	version := command(t, program, "--version")
	for _, want := range []string{"version " + aVersion + " ", "revision: " + aRevision + ")", aDate} {
		if !strings.Contains(version, want) {
			t.Errorf("--version lacks %q:\n%s", want, version)
		}
	}
	for _, file := range []string{"licenses/LICENSE", "licenses/THIRD-PARTY", "kpulse-proxy.1", "completions/bash", "completions/zsh", "systemd/kpulse-proxy.service", "slurm/kpulse-jobs"} {
		only(t, dir, "*/"+file)
	}
	command(t, "bash", "-n", only(t, dir, "*/completions/bash"))
}

// checkSBOM compares the bill of materials, and the licences, with go version -m.
func checkSBOM(t *testing.T, file, archive string) {
	dir := t.TempDir()
	command(t, "tar", "-xzf", archive, "-C", dir)
	program := only(t, dir, "*/kpulse-proxy")
	licenses, err := os.ReadFile(only(t, dir, "*/licenses/THIRD-PARTY"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bom struct{ Components []struct{ PURL string } }
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, c := range bom.Components {
		purl, _, _ := strings.Cut(c.PURL, "?")
		listed[purl] = true
	}
	modules := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(command(t, "go", "version", "-m", program), -1)
	if len(modules) < 20 || len(bom.Components) != len(modules)+1 { // and the standard library
		t.Errorf("%d components, want all %d modules and the standard library", len(bom.Components), len(modules))
	}
	for _, m := range modules {
		// A licence is that of a module, or of a package in it.
		licensed := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m[1]) + `(/\S+)? ` + regexp.QuoteMeta(m[2]) + `: \S`)
		if !listed["pkg:golang/"+m[1]+"@"+m[2]] || !licensed.Match(licenses) {
			t.Errorf("%s %s is missing, or has no licence", m[1], m[2])
		}
	}
}

// checkRPM checks rpm's information about a package.
func checkRPM(t *testing.T, file string) {
	db := "--dbpath=" + t.TempDir()
	command(t, "rpm", db, "--checksig", file)
	for question, wants := range map[string][]string{
		"-qip": {"License     : Apache-2.0", "Name        : kpulse-proxy", "Version     : 1.2.3~rc.4"},
		"-qlp": {"/usr/bin/kpulse-proxy", "/usr/lib/systemd/system/kpulse-proxy.service", "/usr/lib/systemd/system/kpulse-proxy.socket", "/usr/share/licenses/kpulse-proxy/LICENSE", "/usr/share/man/man1/kpulse-proxy.1.gz"},
		"-qcp": {"/etc/default/kpulse-proxy"},
		"-qRp": {"glibc >= 2.34"},
	} {
		out := command(t, "rpm", db, question, file)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("rpm %s lacks %q:\n%s", question, want, out)
			}
		}
	}
	if scripts := command(t, "rpm", db, "-qp", "--scripts", file); strings.Contains(scripts, "--now enable") || strings.Contains(scripts, "systemctl start") {
		t.Errorf("the rpm starts something:\n%s", scripts)
	}
}

// checkDeb installs a package in a Debian with apt, and runs systemd-analyze on its units there,
// with each drop-in.
func checkDeb(t *testing.T, debian, file string) {
	root := t.TempDir()
	command(t, "tar", "-xf", debian, "-C", root)
	command(t, "cp", file, filepath.Join(root, "tmp/kpulse-proxy.deb"))
	in := func(args ...string) string {
		t.Helper()
		return command(t, "chroot", append([]string{root, "env", "DEBIAN_FRONTEND=noninteractive"}, args...)...)
	}
	in("apt-get", "install", "-y", "-q", "/tmp/kpulse-proxy.deb")
	if out := in("dpkg", "--verify", "kpulse-proxy"); strings.Contains(out, "5") { // a checksum that differs
		t.Errorf("dpkg --verify: %s", out)
	}
	if out := in("kpulse-proxy", "check", "config", "/usr/share/kpulse-proxy/config.example.yml"); !strings.Contains(out, ": ok") {
		t.Errorf("check config: %s", out)
	}
	if link, err := os.Readlink(filepath.Join(root, "etc/systemd/system/multi-user.target.wants/kpulse-proxy.service")); err != nil || link != "/lib/systemd/system/kpulse-proxy.service" {
		t.Errorf("the service is not enabled: %q, %v", link, err)
	}
	for dropIn, exposure := range exposures(t) {
		drop := "/etc/systemd/system/kpulse-proxy.service.d"
		if dropIn != "" {
			in("install", "-m", "0644", "-D", "/usr/share/kpulse-proxy/systemd/"+dropIn, drop+"/"+dropIn)
		}
		if out := in("systemd-analyze", "verify", "kpulse-proxy.service", "kpulse-proxy.socket"); strings.Contains(out, "kpulse") {
			t.Errorf("systemd-analyze verify with %q: %s", dropIn, out)
		}
		if out := in("systemd-analyze", "security", "--offline=true", "kpulse-proxy.service"); !strings.Contains(out, "Overall exposure level for kpulse-proxy.service: "+exposure+" ") {
			t.Errorf("deploy/README.md says an exposure of %s with %q:\n%s", exposure, dropIn, out)
		}
		in("rm", "-rf", drop)
	}
	in("sh", "-c", "echo KPULSE_BACKEND=replay >> /etc/default/kpulse-proxy && apt-get remove -y -q kpulse-proxy")
	if out := in("cat", "/etc/default/kpulse-proxy"); !strings.HasSuffix(out, "KPULSE_BACKEND=replay\n") {
		t.Errorf("removal deleted the settings:\n%s", out)
	}
	in("apt-get", "purge", "-y", "-q", "kpulse-proxy")
	in("rm", "/tmp/kpulse-proxy.deb")
	if left := in("find", "/etc", "/usr", "/var/lib/systemd", "/var/lib/private", "-name", "*kpulse*"); left != "" && !strings.Contains(left, "No such file") {
		t.Errorf("a purge leaves:\n%s", left)
	}
}

// exposureRow matches a row of the table of units in deploy/README.md: a drop-in, or none, and its
// exposure.
var exposureRow = regexp.MustCompile("(?m)^\\| (?:the unit alone|\\[`([a-z-]+\\.conf)`\\]).* \\| ([0-9.]+) \\|$")

// exposures returns the exposure of the service with each drop-in, according to deploy/README.md:
// at most 2.0, except for drop-ins that open a device.
func exposures(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(top + "/deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, row := range exposureRow.FindAllStringSubmatch(string(page), -1) {
		found[row[1]] = row[2]
		dropIn, err := os.ReadFile(top + "/deploy/systemd/" + cmp.Or(row[1], "kpulse-proxy.service"))
		if exposure, _ := strconv.ParseFloat(row[2], 64); err != nil || exposure > 2 && !strings.Contains(string(dropIn), "\nPrivateDevices=no\n") {
			t.Errorf("%q has an exposure of %s: %v", row[1], row[2], err)
		}
	}
	if files, err := filepath.Glob(top + "/deploy/systemd/*.conf"); err != nil || len(found) != len(files)+1 {
		t.Fatalf("deploy/README.md has the exposures %v, and there are %d drop-ins", found, len(files))
	}
	return found
}
