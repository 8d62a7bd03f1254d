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

	"github.com/kpulse/kpulse-proxy/internal/slow"
)

// A real control plane of Kubernetes: etcd, kube-apiserver with RBAC, kube-controller-manager,
// kube-scheduler, and kwok, which plays the kubelets. All tests share one; the first that asks
// for it starts it, and it ends with the tests. The servers are built by
//
//	make kubernetes DIR=/tmp/kubernetes
//	KPULSE_KUBERNETES=/tmp/kubernetes go test ./internal/e2e -run Kubernetes
//
// and etcd is Debian's etcd-server. .ci/run does the same. How a test uses it:
//
//	k := kubernetes(t)                       // skips where there are no servers; fails in CI
//	ns := k.namespace(t)                     // of this test alone, gone at its end
//	node := k.node(t, "")                    // a node of this test alone; kwok is its kubelet
//	k.apply(t, ns, yaml)                     // server-side apply of any kind, several documents;
//	                                         // what it made is deleted at the test's end
//	k.define(t, "ray.io/v1", "RayCluster", "rayclusters") // a kind that another operator brings
//	k.awaitPods(t, ns, "app=x", 2)           // until so many pods run; returns them
//	k.delete(t, "apps/v1", "Deployment", ns, "x")
//	user := k.account(t, ns, "proxy")        // a ServiceAccount with a real token, and no rights
//	k.bind(t, user, "", "kpulse-proxy-dra")  // a ClusterRole of deploy/kubernetes/rbac.yaml
//	gate := k.gate(t)                        // this test's own way to the API server
//	file := k.kubeconfig(t, user, gate.url)  // for --kube.config
//	gate.hang(); gate.cut(); gate.refuse()   // … which the test can disturb; gate.heal();
//	gate.strand()                            // the connections that are there, silently
//	k.requests(t, user)                      // what the API server was asked by that account
//
// Tests run at the same time: give names only within namespaces of your own, or make them
// unique with unique(t). Pods run on nodes of this test if their nodeSelector says
// kubernetes.io/hostname, or nodeName. A pod's address is of 127.64.0.0/16, one of its own,
// where a test can listen as if it were the pod; the node's is 127.0.0.1. A pod ends when its
// annotation kpulse.test/exit becomes 0 or 1. A test whose servers hang must not stop the API
// server: others use it.

// cluster is a running control plane.
type cluster struct {
	url       string // https://127.0.0.1:PORT
	dir       string // certificates, data and logs
	admin     string // token of system:masters
	client    *http.Client
	processes []*process // in the order in which they started
	watchdog  *exec.Cmd

	deployed  sync.Once // deploy/kubernetes/rbac.yaml
	defined   sync.Map  // by "APIVERSION KIND": the sync.Once of define
	resources sync.Map  // by "PATH KIND"
}

// sharedCluster is the one of this test process.
var sharedCluster struct {
	sync.Once
	*cluster
	err error
}

// kubernetesServers are the programs that KPULSE_KUBERNETES has.
var kubernetesServers = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// kubernetes returns the shared control plane. CI sets KPULSE_REQUIRE_KUBERNETES, which
// makes its absence a failure.
func kubernetes(t *testing.T) *cluster {
	t.Helper()
	slow.Test(t)
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

// stopCluster ends the shared control plane, if a test started it.
func stopCluster() {
	if c := sharedCluster.cluster; c != nil {
		c.stop()
	}
}

// startCluster starts all servers and returns once the API server is ready. The others
// find it by themselves.
func startCluster(bin string) (*cluster, error) {
	for _, name := range kubernetesServers {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("%w; make kubernetes DIR=%s builds it", err, bin)
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

// startEtcd returns where etcd serves, once it does: the API server does not wait long.
func (c *cluster) startEtcd() (address string, err error) {
	binary, err := exec.LookPath("etcd")
	if err != nil {
		return "", fmt.Errorf("%w; apt-get install etcd-server", err)
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	peers, err := freePort()
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

// awaitReady waits until a server is ready, unless it ends before.
func (p *process) awaitReady(ready func() bool) error {
	for end := time.Now().Add(patience); time.Now().Before(end) && p.runs(); time.Sleep(100 * time.Millisecond) {
		if ready() {
			return nil
		}
	}
	log := p.output()
	return fmt.Errorf("%s does not serve:\n%s", p.cmd.Path, log[max(0, len(log)-2000):])
}

// startAPIServer returns once it is ready.
func (c *cluster) startAPIServer(binary, etcd string) error {
	if err := c.writeFiles(); err != nil {
		return err
	}
	port, err := freePort()
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
			return false // it has not written its certificate yet
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

// start starts a server that outlives the test that asks for it.
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

// watch has the servers end even if the tests end without a word, such as at their
// time limit: a shell waits for the end of a pipe that this process holds.
func (c *cluster) watch() error {
	script := "read x; kill -9"
	for _, p := range c.processes {
		script += fmt.Sprint(" ", p.cmd.Process.Pid)
	}
	c.watchdog = exec.Command("/bin/sh", "-c", script+"; rm -rf '"+c.dir+"'")
	c.watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for it
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

// names counts those that unique has given.
var names atomic.Int64

// unique returns a name that no other test has, as objects of Kubernetes are named.
func unique(t *testing.T) string {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return fmt.Sprintf("%.40s-%d", strings.TrimPrefix(name, "test"), names.Add(1))
}
