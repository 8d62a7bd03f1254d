package dcgm

import (
	"slices"
	"strings"
	"testing"
)

func TestJob(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want []Variable
	}{
		{"none", map[string]string{"HOME": "/root"}, nil},
		{"srun", map[string]string{
			"SLURM_PROCID": "9", "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "gpu07", "SLURM_NTASKS": "16",
			"SLURM_JOB_NODELIST": "gpu[07-08]", "SLURM_LOCALID": "1", "SLURM_NODEID": "1", "SLURM_NNODES": "2", "SLURM_JOB_NAME": "train",
		}, []Variable{{"job_id", "4711"}, {"step_id", "0"}, {"job_name", "train"}, {"node", "gpu07"}, {"node_id", "1"}, {"nodes", "2"},
			{"node_list", "gpu[07-08]"}, {"rank", "9"}, {"local_rank", "1"}, {"tasks", "16"}}},
		{"mpirun within a batch step, whose rank is 0", map[string]string{
			"SLURM_JOB_ID": "4711", "SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
		}, []Variable{{"job_id", "4711"}, {"rank", "5"}, {"local_rank", "1"}, {"tasks", "8"}}},
		{"MPICH under PBS", map[string]string{"PBS_JOBID": "12[3].server", "PMI_RANK": "3", "PMI_SIZE": "4", "SLURM_JOB_ID": ""},
			[]Variable{{"job_id", "12[3].server"}, {"rank", "3"}, {"tasks", "4"}}},
		{"a name that would draw on the terminal, one without end", map[string]string{
			"SLURM_JOB_NAME": "\x1b[2Jtrain\r\n", "SLURM_JOB_NODELIST": strings.Repeat("n", 5000),
		}, []Variable{{"job_name", "[2Jtrain"}, {"node_list", strings.Repeat("n", 253) + "…"}}},
	}
	for _, tt := range tests {
		got := Job(func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}
