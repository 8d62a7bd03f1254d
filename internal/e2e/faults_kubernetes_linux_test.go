package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kpulse/kpulse-proxy/internal/holders/kubelettest"
	"github.com/kpulse/kpulse-proxy/internal/holders/kubetest"
)

// kubernetesFaults are those of the kubelet and the API server, seen by a program of their own beside the one that serves.
func kubernetesFaults() []fault {
	row := func(does string, inflict func(*world)) fault {
		return fault{does: does, begin: inflict, seen: seen{says: []string{temperature(during)}}}
	}
	var all []fault
	for how, why := range map[string]string{"parts": "its list does not end after 100 parts", "answer": "request body too large"} {
		all = append(all, row("the list of the API server never ends, in its "+how, func(w *world) {
			cluster := kubetest.New(w)
			up, _ := xidUpstream("n", "GPU-1", 0)
			defer up.stop()
			cluster.Put(exporterPod(w.T, "a", "n", up))
			c := discovering(w.T, cluster)
			awaitPage(w.T, c, "/metrics", 200, `DCGM_FI_DEV_GPU_TEMP`)
			cluster.Endless(how)
			cluster.Put(kubetest.Pod{Namespace: "gpu", Name: "b", UID: "b", Node: "m", IP: "127.0.0.1", Labels: map[string]string{"app": "nvidia-dcgm-exporter"}})
			// A list is due only if the watch cannot go on: a new program lists at once.
			fresh := discovering(w.T, cluster)
			awaitPage(w.T, fresh, "/", 200, why)
			awaitPage(w.T, c, "/metrics", 200, `DCGM_FI_DEV_GPU_TEMP`)
			cluster.Endless("")
			awaitPage(w.T, fresh, "/metrics", 200, `DCGM_FI_DEV_GPU_TEMP`)
		}))
	}
	return append(all, row("an event of the API server never ends", func(w *world) {
		cluster := kubetest.New(w)
		up, _ := xidUpstream("n", "GPU-1", 0)
		defer up.stop()
		cluster.Put(exporterPod(w.T, "a", "n", up))
		cluster.Endless("event")
		c := discovering(w.T, cluster)
		const most = 32 << 20 // buffers of sockets included
		for taken := int64(0); taken == 0 || taken < cluster.Taken.Load() && taken < 4*most; {
			taken = cluster.Taken.Load()
			time.Sleep(time.Second)
		}
		if taken := cluster.Taken.Load(); taken > most {
			w.Errorf("%d MiB of an event are taken", taken>>20)
		}
		cluster.Endless("")
		awaitPage(w.T, c, "/metrics", 200, `DCGM_FI_DEV_GPU_TEMP`)
		next, _ := xidUpstream("m", "GPU-2", 0)
		defer next.stop()
		cluster.Put(exporterPod(w.T, "b", "m", next)) // is told by a watch
		awaitPage(w.T, c, "/metrics", 200, `uuid="GPU-2"`)
	}), row("the kubelet names a pod by a megabyte", func(w *world) {
		kubelet := kubelettest.New(w)
		long := strings.Repeat("ä", 1<<19)
		kubelet.Set(kubelettest.Pod(long, long, "nvidia.com/gpu", "GPU-1"))
		file := filepath.Join(w.dir, "page")
		if err := os.WriteFile(file, []byte(reading(during)), 0o600); err != nil {
			w.Fatal(err)
		}
		c := startScraping(w.T, file, "--kube.pod-resources="+kubelet.Socket)
		cut := strings.Repeat("ä", 125) + "…" // 253 bytes, the longest name in Kubernetes
		awaitPage(w.T, c, "/metrics", 200, fmt.Sprintf(`kpulse_allocation_info\{[^}]*workload_namespace="%s",workload_pod="%[1]s"`, cut))
	}))
}
