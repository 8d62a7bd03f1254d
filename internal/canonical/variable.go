package canonical

// Variable is one thing that the environment tells of the batch job that we were
// started in, such as job_id or rank. Values are for people and never labels: they
// change with every job.
type Variable struct{ Name, Value string }
