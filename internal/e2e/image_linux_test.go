package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestImage builds all images of the unchanged Dockerfile with buildah, and runs them. Base images
// cannot be pulled everywhere: a Debian with this machine's Go and its C library take their names,
// and that of NVIDIA's image a Debian with dcgmi of NVIDIA's stack, if that is there.
func TestImage(t *testing.T) {
	debian := aDebian(t, "KPULSE_REQUIRE_IMAGE", "buildah")
	b := newImageStore(t)
	b.base(debian)
	b.image("localhost/first", "static nvml operator")
	b.image("localhost/second", "static")

	if one, two := b.digest("localhost/first:"+aVersion), b.digest("localhost/second:"+aVersion); one != two || !strings.HasPrefix(one, "sha256:") {
		t.Errorf("two builds have the digests %s and %s", one, two)
	}
	for tag, user := range map[string]string{aVersion: "65534:65534", aVersion + "-nvml": "65534:65534", aVersion + "-operator": "0:0"} {
		t.Run(tag, func(t *testing.T) { b.check(t, "localhost/first:"+tag, user) })
	}
	container := b.run("buildah", "from", "--pull-never", "localhost/first:"+aVersion+"-operator")
	t.Run("slot without engine", func(t *testing.T) {
		env := operatorEnv(podOf(t, operatorDaemonSet(t)), "n", map[string]string{"DCGM_EXPORTER_LISTEN": "127.0.0.1:0", "DCGM_REMOTE_HOSTENGINE_INFO": ""})
		out, err := b.inSlot(container, env).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "GPUs before Hopper") || !strings.Contains(string(out), "counters=/etc/dcgm-exporter/dcp-metrics-included.csv") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
	t.Run("slot", func(t *testing.T) { b.checkSlot(t, container) })
}

// inSlot returns the command that runs the image of a container with an environment and flags of buildah run.
func (b *imageStore) inSlot(container string, env []string, flags ...string) *exec.Cmd {
	args := append([]string{"run"}, flags...)
	for _, v := range env {
		args = append(args, "--env", v)
	}
	cmd := exec.Command("buildah", append(args, container, "--", "/kpulse-proxy")...)
	cmd.Env = b.env
	return cmd
}

// checkSlot runs the image operator with the environment and the mount of the gpu-operator's DaemonSet: its dcgmi asks
// NVIDIA's host engine for the counters of the file in the image, and the kubelet names the pods.
func (b *imageStore) checkSlot(t *testing.T, container string) {
	n := newRealNode(t, dcgm4, "h100")
	address := freeAddress(t)
	env, sockets := slotOf(t, n, podOf(t, operatorDaemonSet(t)), "n", address, "ml"), ""
	for i, v := range env {
		if name, value, _ := strings.Cut(v, "="); name == "DCGM_POD_RESOURCES_KUBELET_SOCKET" {
			sockets, env[i] = filepath.Dir(value), "KPULSE_LOG_LEVEL=info" // the socket is where the DaemonSet mounts it
		} else if name == "DCGM_EXPORTER_COLLECTORS" {
			env[i] = name + "=/etc/dcgm-exporter/dcp-metrics-included.csv"
		}
	}
	c := n.start(t, b.inSlot(container, env, "--volume", sockets+":"+kubeletSockets+":ro"))
	awaitPodNames(t, c, "n", "ml")
	if status := get(t, c.URL+"/health"); status != http.StatusOK {
		t.Errorf("/health answers %d", status)
	}
	check := b.inSlot(container, env)
	check.Args = append(check.Args, "check", "alive")
	if out, err := check.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != c.URL+": alive" {
		t.Errorf("the health check says %q, %v", out, err)
	}
	if log := c.Logged(); strings.Contains(log, "NVML") || strings.Contains(log, "no effect") {
		t.Error(log)
	}
}

// imageStore is where buildah keeps images during a test.
type imageStore struct {
	t   *testing.T
	dir string
	env []string
}

func newImageStore(t *testing.T) *imageStore {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "storage.conf")
	text := "[storage]\ndriver = \"vfs\"\ngraphroot = \"" + dir + "/graph\"\nrunroot = \"" + dir + "/run\"\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &imageStore{t: t, dir: dir, env: append(os.Environ(), "CONTAINERS_STORAGE_CONF="+conf, "BUILDAH_ISOLATION=chroot")}
}

// run runs a program with the store; it must succeed.
func (b *imageStore) run(name string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = b.env
	out, err := cmd.Output()
	if err != nil {
		text := out
		if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output wraps nothing
			text = append(text, failed.Stderr...)
		}
		b.t.Fatalf("%s %v: %v\n%s", name, args, err, text)
	}
	return strings.TrimSpace(string(out))
}

// base creates the base images of the Dockerfile.
func (b *imageStore) base(debian string) {
	b.t.Helper()
	libraries := filepath.Join(b.dir, "libraries")
	if err := os.Mkdir(libraries, 0o755); err != nil {
		b.t.Fatal(err)
	}
	b.run("tar", "-xf", debian, "-C", libraries, "--wildcards", "./lib", "./lib64", "./usr/lib64", "./usr/lib/*/ld-linux-*.so.*", "./usr/lib/*/libc.so.6", "./usr/lib/*/libdl.so.2", "./usr/lib/*/libpthread.so.0", "./usr/lib/*/libresolv.so.2")
	script, err := os.ReadFile(top + "/deploy/image/build")
	if err != nil {
		b.t.Fatal(err)
	}
	dcgm := string(regexp.MustCompile(`nvcr\.io/[\w./:-]+`).Find(script))
	for image, content := range map[string]string{"docker.io/library/golang:1.26-bookworm": debian, "gcr.io/distroless/base-nossl-debian12": libraries, dcgm: debian} {
		container := b.run("buildah", "from", "scratch")
		b.run("buildah", "add", "-q", container, content, "/")
		if stack := os.Getenv("KPULSE_DCGM_STACK"); image == dcgm && stack != "" { // its dcgmi has its own C library
			b.run("buildah", "add", "-q", container, stack, "/opt/stack")
			b.run("buildah", "run", container, "--", "ln", "-s", "/opt/stack/path/dcgmi", "/usr/bin/dcgmi")
			b.run("buildah", "config", "--cmd", `["nv-hostengine", "-n"]`, container)
		}
		b.run("buildah", "config", "--env", "PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--env", "GOTOOLCHAIN=local", container)
		b.run("buildah", "commit", "-q", "--rm", container, image)
	}
}

// image runs make image with this machine's Go, modules and build cache.
func (b *imageStore) image(name, variants string) {
	b.t.Helper()
	flags := "--pull-never --volume " + strings.TrimSpace(b.run("go", "env", "GOROOT")) + ":/usr/local/go:ro"
	for _, module := range []string{top, top + "/deploy/packages/supply"} { // the build has no network, and needs modules that were never compiled
		b.run("go", "-C", module, "mod", "download")
	}
	for variable, at := range map[string]string{"GOMODCACHE": "/root/go/pkg/mod", "GOCACHE": "/root/.cache/go-build"} {
		flags += " --volume " + b.run("go", "env", variable) + ":" + at
	}
	b.run("make", append([]string{"-C", top, "image", "ENGINE=buildah", "IMAGE=" + name, "VARIANTS=" + variants, "FLAGS=" + flags}, stamps...)...)
}

// digest returns an image's digest in a registry. Docker's format, which buildah uses locally to
// keep the health check, contains a random container ID.
func (b *imageStore) digest(image string) string {
	b.t.Helper()
	dir := b.t.TempDir()
	b.run("buildah", "push", "-q", "--format", "oci", image, "oci:"+dir+":image")
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var index struct{ Manifests []struct{ Digest string } }
	if err := json.Unmarshal(text, &index); err != nil || len(index.Manifests) != 1 {
		b.t.Fatalf("%v: %s", err, text)
	}
	return index.Manifests[0].Digest
}

// check inspects an image, runs it, and runs its health check.
func (b *imageStore) check(t *testing.T, image, user string) {
	var found struct {
		Docker struct {
			Config struct {
				User        string
				Entrypoint  []string
				Cmd         []string
				Labels      map[string]string
				Healthcheck struct{ Test []string }
			}
		}
	}
	if err := json.Unmarshal([]byte(b.run("buildah", "inspect", "--type", "image", image)), &found); err != nil {
		t.Fatal(err)
	}
	config := found.Docker.Config
	labels := map[string]string{"version": aVersion, "revision": aRevision, "created": aDate, "licenses": "Apache-2.0", "title": "kpulse-proxy"}
	for name, want := range labels {
		if got := config.Labels["org.opencontainers.image."+name]; got != want {
			t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
	if config.User != user || len(config.Cmd) != 0 || len(config.Entrypoint) != 1 || len(config.Healthcheck.Test) < 2 || config.Healthcheck.Test[0] != "CMD" {
		t.Fatalf("the image differs from the Dockerfile: %+v", config)
	}
	container := b.run("buildah", "from", "--pull-never", image)
	if out := b.run("buildah", "run", container, "--", config.Entrypoint[0], "--version"); !strings.Contains(out, "version "+aVersion+" ") {
		t.Errorf("--version: %s", out)
	}
	address := freeAddress(t)
	served := exec.Command("buildah", "run", "--env", "KPULSE_WEB_LISTEN_ADDRESS="+address, container, "--", config.Entrypoint[0], "--backend=replay")
	served.Env = b.env
	child, err := startChild(served, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Stop() }) // buildah stops the container
	health := append([]string{"run", "--env", "KPULSE_WEB_LISTEN_ADDRESS=" + address, container, "--"}, config.Healthcheck.Test[1:]...)
	if out := b.run("buildah", health...); out != child.URL+": alive" {
		t.Errorf("the health check says %q", out)
	}
	if status := get(t, child.URL+"/metrics"); status != http.StatusOK {
		t.Errorf("/metrics answers %d", status)
	}
}
