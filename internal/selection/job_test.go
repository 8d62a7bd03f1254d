package selection

import (
	"slices"
	"strings"
	"testing"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

// TestJob: the environments are those that the manuals of the schedulers and launchers describe.
func TestJob(t *testing.T) {
	for _, tt := range []struct{ name, env, want string }{
		{"none", "HOME=/root", ""},

		{
			"srun", "SLURM_PROCID=9 SLURM_JOB_ID=4711 SLURM_STEP_ID=0 SLURMD_NODENAME=gpu07 SLURM_NTASKS=16 SLURM_JOB_NODELIST=gpu[07-08]" +
				" SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_NNODES=2 SLURM_JOB_NAME=train SLURM_RESTART_COUNT=2",
			"job_id=4711 step_id=0 restart_count=2 job_name=train node=gpu07 node_id=1 nodes=2 node_list=gpu[07-08] rank=9 local_rank=1 tasks=16",
		},
		{
			"the first of an array of sbatch", "SLURM_JOB_ID=4713 SLURM_ARRAY_JOB_ID=4711 SLURM_ARRAY_TASK_ID=0 SLURM_JOB_USER=ada" +
				" SLURM_JOB_ACCOUNT=physics SLURM_JOB_PARTITION=gpu SLURM_CLUSTER_NAME=alpha SLURM_JOB_NUM_NODES=4 SLURM_JOB_GPUS=2-3",
			"job_id=4713 array_job_id=4711 array_task_id=0 user=ada account=physics partition=gpu cluster=alpha nodes=4 gpus=2-3",
		},
		{"a step with some of the GPUs of its job", "SLURM_JOB_GPUS=0-3 SLURM_STEP_GPUS=1", "gpus=1"},
		{
			"Slurm's older names", "SLURM_JOBID=4711 SLURM_STEPID=3 SLURM_NNODES=2 SLURM_NODELIST=gpu[07-08]",
			"job_id=4711 step_id=3 nodes=2 node_list=gpu[07-08]",
		},

		{
			"an array of PBS", "PBS_JOBID=12[3].server PBS_ARRAY_INDEX=3 PBS_JOBNAME=train PBS_O_LOGNAME=ada PBS_ACCOUNT=physics PBS_QUEUE=gpu",
			"job_id=12[3].server array_task_id=3 job_name=train user=ada account=physics partition=gpu",
		},
		{
			"an array of LSF", "LSB_JOBID=748 LSB_JOBINDEX=7 LSB_JOBNAME=hello[7] LSFUSER=ada LSB_QUEUE=normal",
			"job_id=748 array_task_id=7 job_name=hello[7] user=ada partition=normal",
		},
		{"LSF, without an array", "LSB_JOBID=748 LSB_JOBINDEX=0", "job_id=748"},

		{
			"mpirun of Open MPI within a batch step, whose rank is 0",
			"SLURM_JOB_ID=4711 SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1",
			"job_id=4711 rank=5 local_rank=1 tasks=8",
		},
		{"MVAPICH", "MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_SIZE=8", "rank=5 local_rank=1 tasks=8"},
		{"MPICH under PBS", "PBS_JOBID=12.server PMI_RANK=3 PMI_SIZE=4 SLURM_JOB_ID=", "job_id=12.server rank=3 tasks=4"},
		{"Intel MPI", "PMI_RANK=3 MPI_LOCALRANKID=1 PMI_SIZE=4", "rank=3 local_rank=1 tasks=4"},
		{"PMIx", "PMIX_RANK=3", "rank=3"},
		{
			"torchrun on each node of a job", "SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NTASKS=2 GROUP_RANK=1 RANK=5 LOCAL_RANK=1 WORLD_SIZE=8",
			"node_id=1 rank=5 local_rank=1 tasks=8",
		},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(tt.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		var got []string
		for _, v := range Job(lookup(env)) {
			got = append(got, v.Name+"="+v.Value)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestJobText: values that would draw on the terminal, or that are too long, can be shown.
func TestJobText(t *testing.T) {
	env := map[string]string{"SLURM_JOB_NAME": "\x1b[2Jtrain\r\n", "SLURM_JOB_NODELIST": strings.Repeat("n", 5000)}
	got := Job(lookup(env))
	want := []canonical.Variable{{Name: "job_name", Value: "[2Jtrain"}, {Name: "node_list", Value: strings.Repeat("n", 253) + "…"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestJobNames(t *testing.T) {
	want := strings.Fields(`job_id step_id array_job_id array_task_id restart_count job_name user account partition cluster
		node node_id nodes node_list rank local_rank tasks gpus`)
	if got := JobNames(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
