package selection

import (
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

func TestJob(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want []canonical.Variable
	}{
		{"none", map[string]string{"HOME": "/root"}, nil},
		{"srun", map[string]string{
			"SLURM_PROCID": "9", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "gpu07", "SLURM_NTASKS": "16",
			"SLURM_JOB_NODELIST": "gpu[07-08]", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_NNODES": "2", "SLURM_JOB_NAME": "train", "SLURM_RESTART_COUNT": "2",
		}, []canonical.Variable{{Name: "job_id", Value: "4711"}, {Name: "step_id", Value: "0"}, {Name: "restart_count", Value: "2"}, {Name: "job_name", Value: "train"}, {Name: "node", Value: "gpu07"}, {Name: "node_id", Value: "1"}, {Name: "nodes", Value: "2"},
			{Name: "node_list", Value: "gpu[07-08]"}, {Name: "rank", Value: "9"}, {Name: "local_rank", Value: "1"}, {Name: "tasks", Value: "16"}}},
		{"mpirun within a batch step, whose rank is 0", map[string]string{
			"SLURM_JOB_ID": "4711", "SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
		}, []canonical.Variable{{Name: "job_id", Value: "4711"}, {Name: "rank", Value: "5"}, {Name: "local_rank", Value: "1"}, {Name: "tasks", Value: "8"}}},
		{"MPICH under PBS", map[string]string{"PBS_JOBID": "12[3].server", "PMI_RANK": "3", "PMI_SIZE": "4", "SLURM_JOB_ID": ""},
			[]canonical.Variable{{Name: "job_id", Value: "12[3].server"}, {Name: "rank", Value: "3"}, {Name: "tasks", Value: "4"}}},
		{"a name that would draw on the terminal, one without end", map[string]string{
			"SLURM_JOB_NAME": "\x1b[2Jtrain\r\n", "SLURM_JOB_NODELIST": strings.Repeat("n", 5000),
		}, []canonical.Variable{{Name: "job_name", Value: "[2Jtrain"}, {Name: "node_list", Value: strings.Repeat("n", 253) + "…"}}},
	}
	for _, tt := range tests {
		got := Job(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}
