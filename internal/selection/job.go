package selection

import (
	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/diag"
)

// jobVariables are in the order in which they are shown. The first name that is
// set counts: an MPI launcher knows the rank better than the Slurm step that
// started it. Names are those of Slurm's srun and sbatch, of Open MPI, MVAPICH,
// MPICH and Intel MPI (Hydra), of torchrun, of PBS and of LSF.
var jobVariables = []struct {
	name string
	from []string
}{
	{"job_id", []string{"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID"}},
	{"step_id", []string{"SLURM_STEP_ID", "SLURM_STEPID"}},
	{"array_job_id", []string{"SLURM_ARRAY_JOB_ID"}},
	{"array_task_id", []string{"SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", lsfIndex}},
	{"restart_count", []string{"SLURM_RESTART_COUNT"}},
	{"job_name", []string{"SLURM_JOB_NAME", "PBS_JOBNAME", "LSB_JOBNAME"}},
	{"user", []string{"SLURM_JOB_USER", "PBS_O_LOGNAME", "LSFUSER"}},
	{"account", []string{"SLURM_JOB_ACCOUNT", "PBS_ACCOUNT"}},
	{"partition", []string{"SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE"}},
	{"cluster", []string{"SLURM_CLUSTER_NAME"}},
	{"node", []string{"SLURMD_NODENAME"}},
	{"node_id", []string{"SLURM_NODEID", "GROUP_RANK"}},
	{"nodes", []string{"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}},
	{"node_list", []string{"SLURM_JOB_NODELIST", "SLURM_NODELIST"}},
	{"rank", []string{"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "RANK", "SLURM_PROCID"}},
	{"local_rank", []string{"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", "SLURM_LOCALID"}},
	{"tasks", []string{"OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_NTASKS"}},
	{"gpus", []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}},
}

// lsfIndex is 0 in a job that is no part of an array, as in the environment of a job of LSF 7 that
// Open MPI's users' list has (2009).
const lsfIndex = "LSB_JOBINDEX"

// JobNames returns the names of all variables that Job can return, in its order.
func JobNames() []string {
	names := make([]string, len(jobVariables))
	for i, v := range jobVariables {
		names[i] = v.name
	}
	return names
}

// Job returns what the environment says about the current job: job_id, step_id,
// rank and more, in a fixed order, without what is unset. Outside of a job it
// returns nothing. Values are printable, and at most 256 bytes long. They change
// with every job, so they are for people to read, not for labels.
func Job(lookup func(name string) (value string, ok bool)) []canonical.Variable {
	var job []canonical.Variable
	for _, v := range jobVariables {
		for _, name := range v.from {
			value, _ := lookup(name)
			value = diag.Line(value, maxText)
			if value == "" || name == lsfIndex && value == "0" {
				continue
			}
			job = append(job, canonical.Variable{Name: v.name, Value: value})
			break
		}
	}
	return job
}

// maxText is the length of the longest value.
const maxText = 256
