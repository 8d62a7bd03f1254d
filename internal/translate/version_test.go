package translate

import (
	"os"
	"strings"
	"testing"
)

// TestLabelsOfVersions: each version writes its labels, in its order, for a row in the words of
// any other. The blocks are those of the exporter's templates; what the templates do not name
// stays as it is, at the end.
func TestLabelsOfVersions(t *testing.T) {
	rows := map[string]string{
		"1.x": `gpu="0",uuid="GPU-0",device="nvidia0",modelName="M",GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",Hostname="n",` +
			`container_name="c",pod_name="p",pod_namespace="s",pci_bus_id="00000000:18:00.0",DCGM_FI_DRIVER_VERSION="550",hpc_job="7"`,
		"4.8": `gpu="0",UUID="GPU-0",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="M",GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",` +
			`hostname="n",DCGM_FI_DRIVER_VERSION="550",container="c",namespace="s",pod="p",hpc_job="7"`,
		"4.9, of a link's spelling": `gpu="0",gpu_uuid="GPU-0",pci_bus_id="00000000:18:00.0",device="nvidia0",model_name="M",GPU_I_PROFILE="1g.10gb",` +
			`GPU_I_ID="3",hostname="n",DCGM_FI_SYSTEM_DRIVER_VERSION="550",container="c",namespace="s",pod="p",hpc_job="7"`,
		"dmon": `gpu="0",entity="GPU-I 9",UUID="GPU-0",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="M",GPU_I_PROFILE="1g.10gb",` +
			`GPU_I_ID="3",hostname="n",DCGM_FI_DRIVER_VERSION="550",container="c",namespace="s",pod="p",hpc_job="7"`,
	}
	want := map[Version]string{
		V1: `{gpu="0",uuid="GPU-0",device="nvidia0",modelName="M",GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",Hostname="n",` +
			`container_name="c",pod_name="p",pod_namespace="s",hpc_job="7"} `,
		V2: `{gpu="0",UUID="GPU-0",device="nvidia0",modelName="M",GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",Hostname="n",` +
			`DCGM_FI_DRIVER_VERSION="550",container="c",namespace="s",pod="p",hpc_job="7"} `,
		V48: `{gpu="0",UUID="GPU-0",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="M",GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",hostname="n",` +
			`DCGM_FI_DRIVER_VERSION="550",container="c",namespace="s",pod="p",hpc_job="7"} `,
		V49: `{gpu="0",UUID="GPU-0",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="M",GPU_I_PROFILE="1g.10gb",GPU_I_ID="3",hostname="n",` +
			`DCGM_FI_SYSTEM_DRIVER_VERSION="550",container="c",namespace="s",pod="p",hpc_job="7"} `,
	}
	for words, labels := range rows {
		for v, block := range want {
			got := rendered(t, v, "DCGM_FI_DEV_POWER_USAGE{"+labels+"} 70.500000\n")
			if !strings.Contains(got, block) {
				t.Errorf("a row of %s in the words of %s:\n%swant\n%s", words, v, got, block)
			}
		}
	}
}

// TestHeadersOfVersions: TYPE is that of the exporter's counters files.
func TestHeadersOfVersions(t *testing.T) {
	table, err := os.ReadFile("testdata/counters.tsv")
	if err != nil {
		t.Fatal(err)
	}
	families := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(line, "\t")
		if line[0] == '#' {
			continue
		}
		families++
		for _, v := range []Version{V2, V48} {
			kind := cells[1]
			if v != V48 && strings.HasPrefix(cells[0], "DCGM_FI_PROF_PCIE_") {
				kind = "counter"
			}
			if got := rendered(t, v, cells[0]+`{gpu="0",UUID="GPU-0"} 1`+"\n"); !strings.Contains(got, "\n# TYPE "+cells[0]+" "+kind+"\n") {
				t.Errorf("%s has\n%s want TYPE %s", v, got, kind)
			}
		}
	}
	if families < 40 {
		t.Errorf("%d families in the files", families)
	}
}
