package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/e2e/ports"
	"github.com/kpulse/kpulse-proxy/internal/e2e/slow"
)

// A real control plane of Kubernetes: etcd, kube-apiserver with RBAC, kube-controller-manager,
// kube-scheduler, and kwok, which plays the kubelets. All tests share it; the first that needs
// it starts it, and it ends with the tests. Build and use the servers with
//
//	make e2e-kube
//
// etcd is Debian's etcd-server. A test uses the control plane like this:
//
//	k := kubernetes(t)                       // skips without servers; fails in CI
//	ns := k.namespace(t)                     // for this test alone, until it ends
//	node := k.node(t, "")                    // a node for this test alone; kwok is its kubelet
//	k.apply(t, ns, yaml)                     // server-side apply of any kind, several documents;
//	                                         // created objects are deleted when the test ends
//	k.define(t, "ray.io/v1", "RayCluster", "rayclusters") // a kind of another operator
//	k.awaitPods(t, ns, "app=x", 2)           // waits until two pods run; returns them
//	k.delete(t, "apps/v1", "Deployment", ns, "x")
//	user := k.account(t, ns, "proxy")        // a ServiceAccount with a real token, and no rights
//	k.bind(t, user, "", "kpulse-proxy-dra")  // a ClusterRole of deploy/kubernetes/rbac.yaml
//	gate := k.gate(t)                        // this test's own path to the API server
//	file := k.kubeconfig(t, user, gate.url)  // for --kube.config
//	gate.hang(); gate.cut(); gate.refuse()   // disturb that path, until gate.heal();
//	gate.strand()                            // silences existing connections permanently
//	k.requests(t, user)                      // the account's requests to the API server
//
// Tests run in parallel: use names only within namespaces of your own, or make them
// unique with unique(t). Pods run on this test's node if their nodeSelector has
// kubernetes.io/hostname, or by nodeName. Each pod has its own address in 127.64.0.0/16,
// where a test can listen for the pod; the node's is 127.0.0.1. A pod ends when its
// annotation kpulse.test/exit becomes 0 or 1. A test must not stop the shared API server: use
// a gate.

// cluster is a running control plane.
type cluster struct {
	url       string // https://127.0.0.1:PORT
	dir       string // certificates, data and logs
	admin     string // token of system:masters
	client    *http.Client
	processes []*process // in start order
	watchdog  *exec.Cmd

	deployed  sync.Once // deploy/kubernetes/rbac.yaml
	defined   sync.Map  // by "APIVERSION KIND": the sync.Once of define
	resources sync.Map  // by "PATH KIND"
}

// sharedCluster is the cluster of this test process.
var sharedCluster struct {
	sync.Once
	*cluster
	err error
}

// kubernetesServers are the programs in KPULSE_KUBERNETES.
var kubernetesServers = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// kubernetes returns the shared control plane, and skips the test without it. In CI,
// KPULSE_REQUIRE_KUBERNETES makes its absence a failure.
func kubernetes(t *testing.T) *cluster {
	t.Helper()
	slow.Test(t, "KPULSE_KUBERNETES, which make kubernetes builds; etcd")
	bin := os.Getenv("KPULSE_KUBERNETES")
	if bin == "" && os.Getenv("KPULSE_REQUIRE_KUBERNETES") == "" {
		t.Skip("KPULSE_KUBERNETES is not set; make kubernetes builds its servers: see CONTRIBUTING.md")
	}
	sharedCluster.Do(func() { sharedCluster.cluster, sharedCluster.err = startCluster(bin) })
	if sharedCluster.err != nil {
		t.Fatalf("KPULSE_KUBERNETES=%q: %v", bin, sharedCluster.err)
	}
	return sharedCluster.cluster
}

// stopCluster stops the shared control plane, if a test started it.
func stopCluster() {
	if c := sharedCluster.cluster; c != nil {
		c.stop()
	}
}

// startCluster starts all servers and returns once the API server is ready. The others retry until
// they find it.
func startCluster(bin string) (*cluster, error) {
	for _, name := range kubernetesServers {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("%w; make kubernetes builds it", err)
		}
	}
	dir, err := os.MkdirTemp("", "kube")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, admin: "the-admin"}
	if err = c.startServers(bin); err == nil {
		err = c.watch()
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *cluster) startServers(bin string) error {
	etcd, err := c.startEtcd()
	if err != nil {
		return err
	}
	if err := c.startAPIServer(filepath.Join(bin, "kube-apiserver"), etcd); err != nil {
		return err
	}
	config := c.file("admin.kubeconfig")
	if err := c.writeKubeconfig(config, c.url, c.admin); err != nil {
		return err
	}
	if _, err := c.start(filepath.Join(bin, "kube-controller-manager"), "--kubeconfig="+config, "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file="+c.file("accounts.key"), "--root-ca-file="+c.file("apiserver.crt"),
		"--concurrent-gc-syncs=5", "--kube-api-qps=100", "--kube-api-burst=200"); err != nil {
		return err
	}
	if _, err := c.start(filepath.Join(bin, "kube-scheduler"), "--kubeconfig="+config, "--leader-elect=false", "--secure-port=0"); err != nil {
		return err
	}
	_, err = c.start(filepath.Join(bin, "kwok"), "--kubeconfig="+config, "--config="+filepath.Join("testdata", "kubernetes", "kwok.yaml"),
		"--manage-all-nodes", "--node-ip=127.0.0.1", "--cidr=127.64.0.1/16")
	return err
}

// startEtcd returns the address of etcd once it serves: the API server does not wait long.
func (c *cluster) startEtcd() (address string, err error) {
	binary, err := exec.LookPath("etcd")
	if err != nil {
		return "", fmt.Errorf("%w; apt-get install etcd-server", err)
	}
	port, err := ports.Free()
	if err != nil {
		return "", err
	}
	peers, err := ports.Free()
	if err != nil {
		return "", err
	}
	address, peer := "http://127.0.0.1:"+port, "http://127.0.0.1:"+peers
	server, err := c.start(binary, "--data-dir="+c.file("etcd"), "--logger=zap", "--listen-client-urls="+address, "--advertise-client-urls="+address,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	if err != nil {
		return "", err
	}
	return address, server.awaitReady(func() bool {
		res, err := http.Get(address + "/health")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// awaitReady waits until a server is ready, or fails once it has exited.
func (p *process) awaitReady(ready func() bool) error {
	for end := time.Now().Add(patience); time.Now().Before(end) && p.runs(); time.Sleep(100 * time.Millisecond) {
		if ready() {
			return nil
		}
	}
	log := p.output()
	return fmt.Errorf("%s does not serve:\n%s", p.cmd.Path, log[max(0, len(log)-2000):])
}

// startAPIServer starts the API server and returns once it is ready.
func (c *cluster) startAPIServer(binary, etcd string) error {
	if err := c.writeFiles(); err != nil {
		return err
	}
	port, err := ports.Free()
	if err != nil {
		return err
	}
	c.url = "https://127.0.0.1:" + port
	server, err := c.start(binary, "--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+c.dir,
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount",
		"--authorization-mode=RBAC", "--allow-privileged", "--feature-gates=WatchList=false", "--token-auth-file="+c.file("tokens.csv"), "--profiling=false",
		"--service-account-issuer="+c.url, "--service-account-key-file="+c.file("accounts.key"),
		"--service-account-signing-key-file="+c.file("accounts.key"),
		"--audit-policy-file="+filepath.Join("testdata", "kubernetes", "audit.yaml"), "--audit-log-path="+c.file("audit.log"))
	if err != nil {
		return err
	}
	return server.awaitReady(func() bool {
		if c.client == nil && c.trust() != nil {
			return false // its certificate is not written yet
		}
		code, _, err := c.ask(http.MethodGet, "/readyz", "", nil)
		return err == nil && code == http.StatusOK
	})
}

// writeFiles writes what the servers need to trust each other.
func (c *cluster) writeFiles() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(c.file("accounts.key"), pem.EncodeToMemory(block), 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.file("tokens.csv"), []byte(c.admin+`,admin,admin,"system:masters"`+"\n"), 0o600)
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// start starts a server that outlives the calling test.
func (c *cluster) start(binary string, args ...string) (*process, error) {
	log := c.file(filepath.Base(binary) + ".log")
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{cmd: exec.Command(binary, args...), log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	c.processes = append(c.processes, p)
	return p, nil
}

// watch kills the servers even if the tests end abruptly, for example at their time limit: a shell
// waits for the end of a pipe that this process holds.
func (c *cluster) watch() error {
	script := "read x; kill -9"
	for _, p := range c.processes {
		script += fmt.Sprint(" ", p.cmd.Process.Pid)
	}
	c.watchdog = exec.Command("/bin/sh", "-c", script+"; rm -rf '"+c.dir+"'")
	c.watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ignores Ctrl-C
	if _, err := c.watchdog.StdinPipe(); err != nil {
		return err
	}
	return c.watchdog.Start()
}

// stop ends all servers. The watchdog goes first: it must not outlive the others.
func (c *cluster) stop() {
	if c.watchdog != nil {
		c.watchdog.Process.Kill()
		c.watchdog.Wait()
	}
	for _, p := range slices.Backward(c.processes) {
		p.kill()
	}
	os.RemoveAll(c.dir)
}

// names counts the names that unique returned.
var names atomic.Int64

// unique returns a valid Kubernetes object name that no other test has.
func unique(t *testing.T) string {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return fmt.Sprintf("%.40s-%d", strings.TrimPrefix(name, "test"), names.Add(1))
}
