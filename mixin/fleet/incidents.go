package fleet

import "time"

// Incident is a lasting fault in the fleet.
type Incident struct {
	Name string
	// Alert is the alert that finally reports it.
	Alert string
	// The place; UUID and GPU are "" if no board is affected, Job if no job is.
	Cluster, Hostname, Instance, GPU, UUID, Job string
	At                                          time.Duration // since the fleet began
}

// Is reports whether labels name the board of an incident, or its job or proxy.
func (i Incident) Is(labels map[string]string) bool {
	switch {
	case labels["cluster"] != "" && labels["cluster"] != i.Cluster:
		return false
	case i.Alert == "KpulseJobStalled":
		return labels["hpc_job"] == i.Job
	case labels["gpu"] != "":
		return labels["uuid"] == i.UUID || labels["hostname"] == i.Hostname && labels["gpu"] == i.GPU
	}
	return labels["instance"] == i.Instance || labels["hostname"] == i.Hostname
}

// incidents adds faults to some hosts of a fleet that is played for length. A fleet of 16
// hosts has room for all incidents.
func incidents(fleet []*host, length time.Duration) []Incident {
	on := func(cluster string, number int, change func(*host)) {
		for _, h := range fleet {
			if h.cluster == cluster && h.number == number {
				change(h)
			}
		}
	}
	var all []Incident
	add := func(name, alert, cluster string, number, gpu int, before time.Duration, to time.Duration, change func(*state)) {
		on(cluster, number, func(h *host) {
			b := &h.boards[gpu]
			b.trouble = append(b.trouble, trouble{length - before, to, change})
			if name != "" {
				i := Incident{Name: name, Alert: alert, Cluster: cluster, Hostname: h.name, Instance: h.instance(), GPU: string(rune('0' + gpu)), UUID: b.uuid, At: length - before}
				if number%2 == 0 {
					i.Job = h.job()
				}
				all = append(all, i)
			}
		})
	}
	east, west := Clusters[0], Clusters[1]
	add("GPU gone", "KpulseGPUMissing", west, 1, 6, 21*time.Minute, 0, func(s *state) { s.gone = true })
	// The driver reports the XID, and two scrapes later the board is off the bus.
	add("XID 79", "KpulseGPUMissing", west, 0, 3, 25*time.Minute, 0, func(s *state) { s.xid = 79 })
	add("", "", west, 0, 3, 24*time.Minute, 0, func(s *state) { s.gone = true })
	add("NVLink down", "KpulseGPUResetNeeded", west, 2, 2, 24*time.Minute, 0, func(s *state) { s.links, s.linkErrors, s.fabric, s.recovery = linksPerGPU-2, .5, 3, 1 })
	add("straggler", "KpulseGPUStragglerInJob", east, 6, 5, 55*time.Minute, 0, func(s *state) { s.work = launching })
	add("hot", "KpulseGPUThermalThrottling", west, 3, 1, 40*time.Minute, 0, func(s *state) { s.hot = true })
	// The board was reset a quarter of an hour ago, and is healthy.
	add("reset", "", east, 3, 4, 45*time.Minute, length-15*time.Minute, func(s *state) { s.xid, s.uncorrectable = 48, 1 })
	add("", "", east, 1, 0, 50*time.Minute, 0, func(s *state) { s.correctable = 1 })
	add("", "", east, 1, 1, 50*time.Minute, 0, func(s *state) { s.replays, s.width = .2, 8 })
	add("", "", east, 1, 2, 50*time.Minute, 0, func(s *state) { s.remaps = 1 })
	// The middle one of three MIG instances is replaced by a smaller one.
	add("", "", west, 5, 7, 35*time.Minute, 0, func(s *state) {
		small, profile := s.parts[1], s.parts[2].profile
		small.profile, small.id, small.slices = profile, "10", 1
		s.parts = []part{s.parts[0], s.parts[2], small}
	})

	// Both hosts of a job hang, and a host returns from a reboot without its boards.
	addAll := func(name, alert string, number int, before time.Duration, change func(*state)) {
		for gpu := range gpusPerHost {
			add(name, alert, east, number, gpu, before, 0, change)
			name = ""
		}
	}
	addAll("hung job", "KpulseJobStalled", 0, 30*time.Minute, func(s *state) { s.work = hung })
	addAll("", "", 2, 30*time.Minute, func(s *state) { s.work = hung })
	addAll("all GPUs lost", "KpulseUpstreamWithoutGPUs", 5, 20*time.Minute, func(s *state) { s.gone = true })
	silence := func(name, alert string, number int) {
		on(west, number, func(h *host) {
			h.down, h.unlisted = length-20*time.Minute, alert == ""
			all = append(all, Incident{Name: name, Alert: alert, Cluster: west, Hostname: h.name, Instance: h.instance(), At: h.down})
		})
	}
	silence("proxy down", "KpulseProxyInstanceDown", 4)
	silence("silent host", "", 6)
	on(west, 2, func(h *host) { h.switchFails = length - 24*time.Minute })
	on(west, 5, func(h *host) { h.streams, h.evicts = true, length-30*time.Minute })
	on(east, 7, func(h *host) { h.lacks = "DCGM_FI_PROF_DRAM_ACTIVE" })
	return all
}

// instance returns the instance label of a host's proxy.
func (h *host) instance() string { return h.name + ":9401" }
