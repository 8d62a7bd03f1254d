package translate

import (
	"os"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
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

// TestHeadersOfVersions: TYPE and HELP are those of the exporter's counters files.
func TestHeadersOfVersions(t *testing.T) {
	table, err := os.ReadFile("testdata/counters.tsv")
	if err != nil {
		t.Fatal(err)
	}
	families := 0
	for line := range strings.Lines(string(table)) {
		if line[0] == '#' {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		name, kind, help := cells[0], cells[1], cells[2]
		for _, v := range []Version{V1, V2, V48} {
			kind := kind
			if v != V48 && strings.HasPrefix(name, "DCGM_FI_PROF_PCIE_") {
				kind = "counter"
			}
			wanted := "# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n"
			got := rendered(t, v, name+`{gpu="0",UUID="GPU-0"} 1`+"\n")
			if v == V1 { // under a name of its own, if it has one
				old, _, _ := strings.Cut(strings.TrimPrefix(got, "# HELP "), " ")
				wanted = strings.ReplaceAll(wanted, name, old)
			}
			if got != "" && !strings.HasPrefix(got, wanted) || got == "" && v != V1 {
				t.Errorf("%s has\n%swant\n%s", v, got, wanted)
			}
		}
		families++
	}
	if families != len(exporterHelp) {
		t.Errorf("%d families in the files, %d in exporterHelp", families, len(exporterHelp))
	}
}

// TestOwnHelpSaysTheUnit: our own HELP texts end in the unit of the numbers, in the words of the
// exporter's where it has some.
func TestOwnHelpSaysTheUnit(t *testing.T) {
	const text = "Power draw of the board"
	for unit, words := range map[Unit]string{
		Number: "", Ratio: " (ratio, 0 to 1)", Percent: " (in %)", Bytes: " (in bytes)", MiB: " (in MiB)", BytesPerSecond: " (in bytes per second)",
		NVLinkMegabytes: " (in MB/s of 1000 KiB)", Watts: " (in W)", Joules: " (in J)", Millijoules: " (in mJ)", Celsius: " (in C)", Hertz: " (in Hz)",
		Megahertz: " (in MHz)", Seconds: " (in s)", Nanoseconds: " (in ns)",
	} {
		q := quantity{field: canonical.Power, worded: [numVersions]wording{V48: {"some_family", unit}}}
		if got, want := q.help(V48), text+words+"; rendered by kpulse-proxy."; got != want {
			t.Errorf("%s: %q, want %q", unit, got, want)
		}
	}
}
