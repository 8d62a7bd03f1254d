package compute

// Resume makes j, which has judged nothing yet, go on where other stands: with its
// devices, what they did before, and its accounts. From then on other is of no more
// use. The bounds stay j's, and what was counted stays as it was judged then.
func (j *Judge) Resume(other *Judge) {
	expected, most, mostTenants := j.memory.expected, j.memory.most, j.tenants.most
	j.memory, j.tenants = other.memory, other.tenants
	j.memory.expected, j.memory.most, j.tenants.most = expected, most, mostTenants
	for _, d := range j.memory.present {
		d.warning = j.thresholds.warning(d.Model)
	}
}
