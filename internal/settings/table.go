package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/promslog"

	"github.com/kpulse/kpulse-proxy/internal/holders"
)

// table is the table, in the order of --help.
var table = []setting{
	{Flag: "backend", Key: "sources[].backend", placeholder: "prometheus|dcgm|nvml|replay", standard: "prometheus", Modes: modesReading,
		restart: true, at: func(o *Options) any { return &o.FlagSource.Backend },
		check: func(o *Options) error { _, err := parseBackend(o.FlagSource.Backend); return err },
		help: "Where readings come from: prometheus (a dcgm-exporter), dcgm (dcgmi dmon, which the proxy runs), nvml (the driver, without DCGM) " +
			"or replay (a capture; without --source the embedded demo, which needs no GPU)."},
	{Flag: "source", Key: "sources[].source", placeholder: "URL|FILE", Modes: modesReading, restart: true,
		at: func(o *Options) any { return &o.FlagSource.Source }, backends: "prometheus replay",
		remedy: "it reads this machine; the host engine of another one is --backend=dcgm --dcgm.host",
		help: "What to read. prometheus: the exporter's URL, or a file with a saved exposition (default " + defaultUpstream + "). replay: a " +
			"recording, or a file with expositions, dcgmi dmon output or CSV of --export."},
	{Flag: "poll", Key: "sources[].poll", placeholder: "DURATION", Modes: modesReading, restart: true, perSource: true,
		at: func(o *Options) any { return &o.FlagSource.Poll },
		help: "prometheus: read the exporter after this long without a scrape, and at this interval with --export; at least 1s (default 15s). 0 " +
			"reads only when scraped, so that the proxy is not ready before the first scrape. dcgm, nvml: time between two samples, over which " +
			"profiling fields are averaged; at least 100ms (default 1s; with dcgm 100ms for --tui, --export, --once and --record). replay: " +
			"time between two ticks; at least 100ms (default 1s, for a recording its own). A duration, or bare seconds."},
	{Flag: "source.min-interval", standard: "1s", Modes: modesReading, at: func(o *Options) any { return &o.MinInterval },
		check: func(o *Options) error { return within(o.MinInterval, 0, maxInterval) },
		help:  "Scrapes closer together than this share one reading of the exporter; 0 reads it for each scrape."},
	{Flag: "source.timeout", standard: "10s", Modes: modesReading, at: func(o *Options) any { return &o.Timeout },
		check: func(o *Options) error { return within(o.Timeout, Duration(time.Millisecond), longestPoll) },
		help: "Longest time that a read of the exporter may take; by default, a longer timeout that the scraper sends, up to 60s. Raise it " +
			"together with Prometheus' scrape_timeout."},
	{Flag: "source.max-body", Key: "limits.max_body", Modes: modesReading, restart: true, at: func(o *Options) any { return &o.Limits.MaxBody },
		help: "Largest body that is read from the exporter, before and after decompression."},
	{Flag: "memory.limit", Key: "limits.memory", standard: "cgroup", Modes: ModeServe, restart: true, at: func(o *Options) any { return &o.Limits.Memory },
		help: "Memory that all pages and answers share: a size, or cgroup, the limit of the cgroup if it has one. A page of over 64 KiB that does not fit beside " +
			"the others is not read, and its source is down with the kind no_memory; an answer that does not fit is 503."},
	{Flag: "source.max-label-value", Key: "limits.max_label_value", Modes: modesReading, restart: true,
		at: func(o *Options) any { return &o.Limits.MaxLabelValue },
		help: "Longest value of a label that names the GPU, pod or job of a sample. A sample with a longer one is passed through and " +
			"counted, but not translated."},
	{Flag: "node-name", Key: "sources[].node_name", placeholder: "NAME", Modes: modesReading, restart: true, perSource: true,
		at: func(o *Options) any { return &o.FlagSource.NodeName },
		help: "Label hostname of the proxy's own series (default: $NODE_NAME, else what the exporter reports, else the host of its URL. For " +
			"localhost, a loopback address or the GPUs of this machine: $SLURMD_NODENAME, else the name of this machine)."},
	{Flag: "replay", placeholder: "FILE", Modes: modesReading, at: func(o *Options) any { return &o.replayFile },
		help: "Play this file: short for --backend=replay --source=FILE. With --tui it begins again at its end."},
	{Flag: "dcgm.host", Key: "sources[].dcgm_host", placeholder: "HOST", Modes: modesReading, restart: true, perSource: true,
		at: func(o *Options) any { return &o.FlagSource.DCGMHost }, backends: "dcgm", remedy: "it is for --backend=dcgm",
		help: "dcgm: the host engine to read, as dcgmi takes it: HOST[:PORT] or unix://PATH (default: the one on this machine)."},
	{Flag: "dcgm.fields", Key: "sources[].dcgm_fields", placeholder: "all|core|IDS", Modes: modesReading, restart: true, perSource: true,
		at: func(o *Options) any { return &o.FlagSource.DCGMFields }, backends: "dcgm",
		remedy: "it is for --backend=dcgm; an exporter reads what its counters file names",
		help: "dcgm: the fields to ask dcgmi dmon for. all (default): all that the proxy knows; GPUs before Hopper count groups of fields in " +
			"turn, so that each value covers only part of the period. core: all but FP32, FP16, integer and tensor sub-pipes (1007, 1008, 1013 " +
			"to 1016). Or ids, such as 150,155,1002."},
	{Flag: "gpus", placeholder: "0,2-3", Modes: modesReading | modeAttach, at: func(o *Options) any { return &o.GPUs }, backends: "dcgm nvml",
		everywhere: modesShowing, remedy: remedyLocal,
		help: "Which GPUs: indexes, ranges, 7:1 for MIG instance 1 of GPU 7, or beginnings of UUIDs. A server can choose with dcgm and nvml, " +
			"--once, --export, --tui and check health with all backends. Default: all; where --once, --export, --tui and check health show this " +
			"machine, those of CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES, SLURM_STEP_GPUS or SLURM_JOB_GPUS."},
	{Flag: "show-all", Modes: modesReading | modeAttach, at: func(o *Options) any { return &o.ShowAll }, backends: "dcgm nvml",
		everywhere: modesShowing, remedy: remedyLocal,
		help: "All GPUs, whatever the environment chooses (dcgm and nvml; with --once, --export, --tui and check health all backends). --once, " +
			"--export and --tui never show GPUs of this machine that this process may not open, such as those of other jobs."},
	{Flag: "counters", Key: "sources[].counters", file: true, placeholder: "FILE", Modes: modesReading, restart: true, perSource: true,
		at: func(o *Options) any { return &o.FlagSource.Counters }, backends: "dcgm nvml",
		remedy: "it is for --backend=dcgm and nvml; give it to the exporter that is read (dcgm-exporter -f)",
		help: "dcgm, nvml: the counters file of dcgm-exporter. It chooses the DCGM_FI_* and DCGM_EXP_* series to serve, with their TYPE and " +
			"HELP (default: every DCGM_FI_* that is read). The proxy's own series cover all that is read in any case. See check counters " +
			"FILE."},
	{Flag: "collector.processes", Modes: ModeServe | modeTUI, at: func(o *Options) any { return &o.Processes }, backends: "dcgm nvml",
		remedy: "it lists the processes of this machine's GPUs; it is for --backend=dcgm and nvml, which look at them",
		help: "dcgm, nvml: list the processes on the GPUs at /api/v1/processes: pid, user, group, name, memory. Only for clients on this " +
			"machine, and never as series. (A --tui that reads the GPUs itself needs no flag.) A reverse proxy on this machine that sends neither X-Forwarded-For nor the client's own Host makes " +
			"all its clients look local: let it deny the path."},
	{Flag: "collector.processes.cmdline", Modes: ModeServe | modeTUI, needs: "collector.processes",
		at: func(o *Options) any { return &o.CommandLines },
		help: "With --collector.processes: list the command line of each process instead of its name. Command lines may hold secrets, such as " +
			"tokens and passwords, which are not masked."},
	{Flag: "kernel-log", Key: "kernel_log", placeholder: "/dev/kmsg", bare: DefaultKernelLog, Modes: ModeServe | modeTUI, restart: true,
		at:     func(o *Options) any { return &o.KernelLog },
		parse:  func(o *Options, text string) error { o.KernelLog = switched(text, DefaultKernelLog); return nil },
		remedy: "only the server and --tui follow the kernel's log; leave it out, or ask a server that has it: kpulse-proxy check health --url=http://localhost:9401",
		help: "Also read XIDs and SXIDs from the kernel's log, which has the most detail: the time of each error, the sub-code of NVLink 5, the " +
			"process. Without a value it reads /dev/kmsg, which needs CAP_SYSLOG and access to the file; without these the proxy logs a " +
			"warning and continues. The value may also be a file or FIFO with such records, or with the kernel's lines as syslog, journalctl " +
			"or dmesg write them. Name /dev/kmsg where possible, else kern.log: in /var/log/syslog or messages, a line that a user " +
			"writes with logger -t kernel looks like the kernel's, and can drain a node. Only GPUs of this machine get these errors. " +
			"Errors from before the start count if they are younger than xid_hold (24 h) and came after the driver was loaded. " +
			"The environment and the config file also take true and false."},
	{Flag: "state.file", Key: "state_file", placeholder: "FILE", Modes: ModeServe, restart: true, at: func(o *Options) any { return &o.StateFile },
		help: "Keep fatal XIDs and SXIDs, which of them were resolved, and lost GPUs in this file, so that verdicts survive a restart of the " +
			"proxy. A reboot of the node ends them (default: state.json in $STATE_DIRECTORY, which systemd sets; without that, no file)."},
	{Flag: "record", placeholder: "FILE", Modes: modesReading, perSource: true, at: func(o *Options) any { return &o.Record },
		help: "Write all readings to this file, for --replay=FILE to play; an existing file grows. Readings that cannot be written are left out " +
			"and counted."},

	{Flag: "once", group: groupShowing, Modes: modeOnce | ModeExport, perSource: true, at: func(o *Options) any { return &o.Once },
		help: "Read once, print the GPUs as a table, and exit."},
	{Flag: "json", group: groupShowing, Modes: modeOnce | modeHealth | modeReport, needs: "once", at: func(o *Options) any { return &o.JSON },
		help: "With --once, check health or report: print JSON."},
	{Flag: "wide", group: groupShowing, Modes: modeOnce, needs: "once", at: func(o *Options) any { return &o.Wide },
		help: "With --once: print all columns, even if the terminal is too narrow."},
	{Flag: "export", group: groupShowing, placeholder: "default|all|all+|COLUMNS", Modes: modeOnce | ModeExport, perSource: true,
		at: func(o *Options) any { return &o.Columns }, bare: "default", parse: parseColumns,
		help: "Write every reading as CSV to stdout, a row for each device: default (nine columns of KempnerPulse), all (its 34), all+ (those " +
			"and ours), or names of columns. With --once, one reading."},
	{Flag: "export.timeout", group: groupShowing, standard: "5m", Modes: ModeExport, needs: "export",
		at: func(o *Options) any { return &o.ExportTimeout }, check: func(o *Options) error { return within(o.ExportTimeout, 0, longestPoll) },
		help: "With --export: exit with an error when a source gives no reading for this long, beyond its --poll; the first may take three times " +
			"--source.timeout. 0 waits forever."},
	{Flag: "tui", group: groupShowing, Modes: modeTUI | modeAttach, at: func(o *Options) any { return &o.TUI },
		help: "Show the GPUs on this terminal: those of the proxy on this machine, else by reading them itself (always with --backend, --source, " +
			"--replay, --record or a --config.file with sources). Flags of reading and computing have no effect on a proxy that is already " +
			"running."},
	{Flag: "tui.url", group: groupShowing, placeholder: "URL", Modes: modeAttach, needs: "tui", at: func(o *Options) any { return &o.TUIURLs },
		help: "tui: a kpulse-proxy to show, as http://NODE:9401/metrics or NODE; repeat it for several, or give a list, such as node[1-4,7],login " +
			"(default: the one on this machine; in a job of Slurm over several nodes those of SLURM_JOB_NODELIST too)."},
	{Flag: "tui.http-config", group: groupShowing, placeholder: "FILE", Modes: modeAttach | modeHealth | modeReport, needs: "tui",
		at: func(o *Options) any { return &o.TUIHTTP },
		help: "tui, check health, report: file with credentials and TLS settings for asking proxies, or a Prometheus server, in YAML like " +
			"Prometheus' http_config."},
	{Flag: "tui.focus", group: groupShowing, placeholder: "GPU", Modes: modeTUI | modeAttach, needs: "tui",
		at:   func(o *Options) any { return &o.TUIFocus },
		help: "tui: begin with all readings of one GPU, as :focus does: 3, 3:9 for a MIG instance, or the beginning of a UUID."},

	{Flag: "url", group: groupHealth, placeholder: "URL", Modes: modeHealth | modeReport, remedy: remedyAsk, at: func(o *Options) any { return &o.CheckURLs },
		help: "The kpulse-proxy to ask, as http://NODE:9401/metrics or NODE (default: the one on this machine). With --backend, --source or " +
			"--replay, check health takes one reading itself instead, which shows neither rises of counters nor earlier XIDs. report asks " +
			"several: repeat it, or give a list of Slurm's, such as node[1-4,7] (default: those of SLURM_JOB_NODELIST, if that is set)."},
	{Flag: "timeout", group: groupHealth, standard: "10s", Modes: modeHealth | modeReport, remedy: remedyAsk,
		at:    func(o *Options) any { return &o.CheckTimeout },
		check: func(o *Options) error { return within(o.CheckTimeout, Duration(time.Millisecond), longestPoll) },
		help:  "How long to wait for an answer. Without one, check health says unknown."},
	{Flag: "prometheus.url", group: groupHealth, placeholder: "URL", Modes: modeReport, remedy: remedyReport, at: func(o *Options) any { return &o.PrometheusURL },
		help: "report: ask this Prometheus server, or another one with its API, instead of proxies. It knows jobs that are over, and what was before a proxy began."},
	{Flag: "comment", group: groupHealth, Modes: modeReport, remedy: remedyReport, at: func(o *Options) any { return &o.Comment },
		help: "report: print one line, for the batch system to keep, such as Slurm's AdminComment."},
	{Flag: "trusted-uid", group: groupHealth, placeholder: "UID", Modes: modeHealth, remedy: remedyCheck, at: func(o *Options) any { return &o.TrustedUIDs },
		check: func(o *Options) error {
			for _, uid := range o.TrustedUIDs {
				if _, err := strconv.ParseUint(uid, 10, 32); err != nil {
					return fmt.Errorf("%q is no user id; give a number, as id -u USER prints it", uid)
				}
			}
			return nil
		},
		help: "check health, as root: also believe what a program of this user answers on this machine, such as a reverse proxy; repeat it for " +
			"several users. It always believes root and the owner of the state directory (of --state.file, else /var/lib/kpulse-proxy)."},
	{Flag: "npd", group: groupHealth, placeholder: "crit|warn", Modes: modeHealth, remedy: remedyCheck,
		at: func(o *Options) any { return &o.ForNPD }, check: func(o *Options) error { return oneOf(o.ForNPD, "crit", "warn") },
		help: "Answer as a plugin of Kubernetes' node-problem-detector: one line of at most 80 bytes, and exit status 0 if all is well, 1 if a " +
			"GPU is crit (with warn: also if one is warn or hot), 2 if that is unknown."},

	{Flag: "preset", Key: "preset", show: showPreset, group: groupComputing, placeholder: "ai|hpc|mem", Modes: modesReading,
		at: func(o *Options) any { return &o.Judge.Preset }, help: "Weights of real utilization: ai, hpc or mem."},
	{Flag: "weights", Key: "weights", fields: (*Options).weights, group: groupComputing, placeholder: "SM,TENSOR,DRAM,ENGINE", Modes: modesReading,
		at:   func(o *Options) any { return &o.Judge.Weights },
		help: "Your own weights instead of a preset: SM, tensor, DRAM and engine activity; normalised to sum 1."},
	{Flag: "missing-inputs", Key: "missing_inputs", group: groupComputing, placeholder: "renormalize|zero", Modes: modesReading,
		at: func(o *Options) any { return &o.Judge.Missing },
		help: "How real utilization treats an input that the exporter does not give: renormalize (divide by the weight that is present) or zero " +
			"(count it as 0)."},
	{Flag: "min-coverage", Key: "min_coverage", group: groupComputing, Modes: modesReading, at: func(o *Options) any { return &o.Judge.MinCoverage },
		help: "Share of the weights whose input must be read for a score; below it, real utilization is absent and the class unknown."},
	{Flag: "expected-gpus", Key: "sources[].expected_gpus", group: groupComputing, placeholder: "N", Modes: modesReading, restart: true,
		perSource: true, at: func(o *Options) any { return &o.FlagSource.ExpectedGPUs }, parse: (*Options).parseExpected,
		help: "How many GPUs this node should have; 0 means no expectation. A GPU that was lost before the proxy started then counts as missing " +
			"even if the source no longer names it: kpulse_gpu_present is 0 for each missing GPU."},
	{Flag: "config.file", group: groupComputing, placeholder: "FILE", Modes: modesReading, at: func(o *Options) any { return &o.ConfigFile },
		help: "Settings in YAML: several sources, credentials of an exporter, thresholds, warning temperatures, health conditions, the meaning " +
			"of XIDs, names of families, and the values of some flags, which take precedence over it. deploy/config.example.yml shows them all."},
	{Flag: "config.show", group: groupComputing, Modes: modesReading&^modeHealth | modeAttach, at: func(o *Options) any { return &o.ConfigShow },
		remedy: "kpulse-proxy --config.show prints the settings of what runs; leave check health out",
		help: "Print the settings in force as a config file, and exit; nothing is read or served. Settings that have no " +
			"key in the file are comments. Secrets are masked as " + Masked + ", which a config file must not contain."},
	{Flag: "rules.file", Key: "rules.files", file: true, group: groupComputing, placeholder: "FILE", Modes: ModeServe,
		at:     func(o *Options) any { return &o.Rules.Files },
		remedy: "results are served at /metrics, and --once, --export and --tui show none; leave it out",
		help: "Prometheus rule file, or a glob, whose recording rules the proxy evaluates over its own series; their results are served at the " +
			"end of /metrics. Repeatable (in the environment: one per line)."},
	{Flag: "rules.window", Key: "rules.window", group: groupComputing, Modes: ModeServe, at: func(o *Options) any { return &o.Rules.Window },
		help: "How far back rules can look; a rule that looks further is refused. Memory grows with how far back the rules look."},
	{Flag: "rules.max-samples", Key: "rules.max_samples", group: groupComputing, Modes: ModeServe,
		at:   func(o *Options) any { return &o.Rules.MaxSamples },
		help: "Maximum number of samples to keep for rules, at 16 to 32 bytes each, and to load in one evaluation."},
	{Key: "thresholds", group: groupComputing, Modes: modesReading, at: func(o *Options) any { return &o.Judge.Thresholds },
		fields: (*Options).thresholds, help: "Thresholds that readings are compared with."},
	{Key: "temperatures", group: groupComputing, Modes: modesReading, at: func(o *Options) any { return &o.Judge.Thresholds.Temperatures },
		read: readTemperatures, show: showTemperatures, help: "Warning temperatures by model."},
	{Key: "health", group: groupComputing, Modes: modesReading, at: func(o *Options) any { return &o.Judge.States }, fields: (*Options).states,
		help: "The state that each health condition raises."},
	{Key: "xids", group: groupComputing, Modes: modesReading, at: func(o *Options) any { return &o.Judge.XIDs }, read: readXIDs, show: showXIDs,
		help: "Changes to rows of the table of XIDs (deploy/xids.md), by code: a severity, an action or both."},
	{Key: "xid_hold", group: groupComputing, Modes: modesReading, at: func(o *Options) any { return &o.Judge.XIDHold },
		help: "How long a fatal XID keeps a GPU crit unless something shows that it is resolved."},
	{Key: "dialect", group: groupComputing, Modes: modesReading, at: func(o *Options) any { return &o.Rows }, read: readDialect, show: showDialect,
		help: "The meaning of further families of the exporter."},

	{Key: "sources", Modes: modesReading, restart: true, at: func(o *Options) any { return &o.Upstreams },
		help: "What to read if --backend, --source and --replay are not given."},
	{Key: "sources[].http_config", backends: "prometheus", remedy: "it is for URLs", Modes: modesReading, restart: true,
		at: func(o *Options) any { return &o.FlagSource.HTTP }, help: "Credentials, TLS and proxy for a URL, as Prometheus takes them."},
	{Flag: "kube.discover", Key: "kube.discover.selector", placeholder: "SELECTOR", bare: "true", Modes: ModeServe, restart: true,
		at: func(o *Options) any { return &o.Kube.Discover.Selector }, parse: (*Options).parseSelector,
		remedy: "exporters are discovered to be served; with --once, --export and --tui name one, such as --source=http://NODE:9400/metrics",
		help: "Read the exporters whose pods have these labels, while they run: one source for each, named after its node, instead of --source " +
			"unless that is given too. Without a value it reads those of dcgm-exporter's chart and of the gpu-operator: " +
			holders.DefaultSelector + ". With --node-name or NODE_NAME only those of that node, else those of all nodes. " +
			"deploy/kubernetes/rbac.yaml has the rights that this needs."},
	{Flag: "kube.discover-namespace", Key: "kube.discover.namespace", placeholder: "NAMESPACE", Modes: ModeServe, restart: true,
		needs: "kube.discover", at: func(o *Options) any { return &o.Kube.Discover.Namespace },
		help: "With --kube.discover: the namespace that exporters run in (default: any)."},
	{Key: "kube.discover.port", Modes: ModeServe, restart: true, at: func(o *Options) any { return &o.Kube.Discover.Port },
		help: "The name or number of the pods' port (default: metrics, gpu-metrics or 9400)."},
	{Key: "kube.discover.path", Modes: ModeServe, restart: true, at: func(o *Options) any { return &o.Kube.Discover.Path },
		show: func(o *Options, _ string) any { return mask(o.Kube.Discover.Path) }, help: "The path of the pods' URLs."},
	{Key: "kube.discover.scheme", Modes: ModeServe, restart: true, at: func(o *Options) any { return &o.Kube.Discover.Scheme },
		help: "The scheme of the pods' URLs, http or https."},
	{Key: "kube.discover.max_sources", Modes: ModeServe, restart: true, at: func(o *Options) any { return &o.Kube.Discover.MaxSources },
		help: "How many pods are read; more are left out and counted. --series-limit applies to each of them."},
	{Key: "kube.discover.http_config", Modes: ModeServe, restart: true, at: func(o *Options) any { return &o.Kube.Discover.HTTP },
		help: "Credentials, TLS and proxy for the pods' URLs, as Prometheus takes them."},

	{Flag: "kube.pod-resources", Key: "kube.pod_resources", group: groupHolders, placeholder: DefaultPodResources, bare: DefaultPodResources,
		Modes: ModeServe, restart: true, remedy: remedyKube, at: func(o *Options) any { return &o.Kube.PodResources },
		parse: (*Options).parsePodResources,
		help: "Ask the kubelet of this node, every 10 s, which containers have which GPUs and MIG devices: for --backend=dcgm and nvml, and for " +
			"what an exporter leaves out. Without a value it asks at the usual place; mount that directory into the pod, and run as root. " +
			"Devices of claims (DRA) are looked up in the ResourceSlices of the node, for which deploy/kubernetes/rbac.yaml has the rights. " +
			"Only the server asks. The environment and the config file also take true and false."},
	{Flag: "kube.workloads", Key: "kube.workloads", group: groupHolders, Modes: ModeServe, restart: true, remedy: remedyKube,
		at: func(o *Options) any { return &o.Kube.Workloads },
		help: "Ask the Kubernetes API server for the workloads of the pods that hold GPUs: the topmost owner, such as CronJob, RayJob or " +
			"Deployment, becomes workload_kind and workload_name. It is asked in the background, and only for the metadata of pods and their " +
			"owners; deploy/kubernetes/rbac.yaml has the rights that this needs. Until the answer comes, a pod is served without a workload."},
	{Flag: "kube.workload-label", Key: "kube.workload_labels", group: groupHolders, placeholder: "KEY[=KIND]", Modes: ModeServe, restart: true,
		needs: "kube.workloads", at: func(o *Options) any { return &o.Kube.WorkloadLabels },
		help: "With --kube.workloads: a label of pods whose value becomes workload_name instead of the owner's name; workload_kind is then KIND, " +
			"or empty without one. Repeatable (in the environment: one per line); the first label that a pod has counts, and its owner if it " +
			"has none."},
	{Flag: "kube.config", Key: "kube.config", file: true, group: groupHolders, placeholder: "FILE", Modes: ModeServe, restart: true,
		needs: "kube.discover kube.pod-resources kube.workloads", at: func(o *Options) any { return &o.Kube.Config },
		help: "For the --kube flags that ask the API server: the kubeconfig file whose current context names the API server and the user " +
			"(default: the cluster and the service account of the pod that kpulse-proxy runs in). $KUBECONFIG is not read."},
	{Flag: "hpc-job-mapping-dir", group: groupHolders, placeholder: "DIR", Modes: modesReading, at: func(o *Options) any { return &o.JobMappingDir },
		backends: "dcgm nvml", remedy: "it is for --backend=dcgm and nvml; give it to the exporter that is read",
		help: "dcgm, nvml: directory in which the batch system writes the jobs that each GPU is allocated to, as dcgm-exporter reads it: a file " +
			"named 0, or 2.1 for a MIG instance, with a job id on each line."},
	{Flag: "hpc-job-info-dir", group: groupHolders, placeholder: "DIR", Modes: ModeServe | modesShowing&^(modeAttach|modeHealth),
		at: func(o *Options) any { return &o.JobInfoDir },
		help: "Directory in which the batch system describes each job, for hpc_user, hpc_account and hpc_partition of kpulse_allocation_info, " +
			"the landing page, --once, --export and --tui: a file named by the job id, with lines user=…, account=… and partition=…. deploy/slurm/README.md has a prolog for Slurm that writes " +
			"it."},

	{Flag: "passthrough", group: groupServing, placeholder: "valid|verbatim|off", standard: "valid", Modes: ModeServe,
		at: func(o *Options) any { return &o.Passthrough },
		help: "Which of the exporter's lines to serve: valid (all that a Prometheus server takes), verbatim (every byte; one bad line then fails " +
			"the whole scrape), off (only the proxy's own series, beside a direct scrape of the exporter; as OpenMetrics if the scraper asks for that)."},
	{Flag: "compat", Key: "compat", group: groupServing, placeholder: "4.8", Modes: ModeServe, at: func(o *Options) any { return &o.Compat },
		remedy: "only /metrics has the names of other versions; leave out --once, --export or --tui to serve it",
		help: "Serve the readings under the names, units and labels of another version of dcgm-exporter too, such as 4.8, 4.9 or 3.3; or " +
			"those of the exporter that jobstats reads: jobstats. Names that the exporter serves itself are left out, unless --passthrough=off " +
			"drops those. Repeatable (in the environment: one per line); a name that two versions share gets the labels of the first."},
	{Flag: "series", Key: "series.form", group: groupServing, placeholder: "lean|full", Modes: ModeServe, restart: true,
		at: func(o *Options) any { return &o.Series.Form }, check: func(o *Options) error { return oneOf(o.Series.Form, "lean", FullSeries) },
		help: "Which of its own series the proxy serves. lean: for class, health, conditions, clock events and action only the values that " +
			"apply, of its own counters those that ever moved, and nothing that other series give; internal/expose/SERIES.md lists what it " +
			"leaves out. full: all values, with 0 for those that do not apply; /metrics?series=full serves these for one request. Rules and " +
			"dashboards work with both."},
	{Flag: "series.birth", Key: "series.birth", group: groupServing, Modes: ModeServe, at: func(o *Options) any { return &o.Judge.Birth },
		help: "How long, 1s to 5m, a counter that begins after its GPU or pod, such as that of a class entered later, is served as 0 before " +
			"its value, so that increase() over a range that includes this time is exact. It is two of the longest scrape interval that the " +
			"proxy sees, if that is longer."},
	{Flag: "series.exclude", Key: "series.exclude", group: groupServing, placeholder: "REGEX", Modes: ModeServe, restart: true,
		at: func(o *Options) any { return &o.Series.Exclude },
		help: "Leave out kpulse_* families whose whole name matches, such as kpulse_gpu_(encoder|decoder)_.+ (RE2, anchored at both ends). Rules " +
			"of --rules.file still see them, and the exporter's own lines stay. Repeatable (in the environment: one per line)."},
	{Flag: "series-limit", Key: "limits.series_limit", group: groupServing, Modes: modesReading, restart: true,
		at: func(o *Options) any { return &o.Limits.Series },
		help: "Maximum number of kpulse_* series. GPUs above three quarters of it, and pods and jobs above the rest, are left out and counted. A " +
			"series counts as two with labels of 512 bytes, as three with 1024, and so on."},
	{Flag: "web.systemd-socket", group: groupServing, Modes: ModeServe, at: func(o *Options) any { return &o.SystemdSocket },
		help: "Use systemd socket activation listeners instead of port listeners (Linux only)."},
	{Flag: "web.listen-address", group: groupServing, placeholder: DefaultListen, standard: DefaultListen, Modes: ModeServe | modeAttach,
		at: func(o *Options) any { return &o.Listen },
		help: "Addresses on which to expose metrics and web interface; the demo of --backend=replay listens on localhost:9401 unless one is " +
			"given. Repeatable for multiple addresses. Examples: `:9401` or `[::1]:9401` for http, `vsock://:9401` for vsock."},
	{Flag: "web.config.file", group: groupServing, placeholder: "FILE", Modes: ModeServe, at: func(o *Options) any { return &o.WebConfig },
		help: "Path to configuration file that can enable TLS or authentication. See: " +
			"https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md. Its rate_limit applies to health checks " +
			"too; --web.max-requests does not."},
	{Flag: "web.max-requests", Key: "limits.max_requests", group: groupServing, Modes: ModeServe, restart: true,
		at: func(o *Options) any { return &o.Limits.MaxRequests },
		help: "Maximum number of requests served at a time, not counting health checks. Further ones get 503. Four more are answered for /, " +
			"/-/metrics, /sd and /debug/pprof/, which wait for no exporter."},
	{Flag: "web.min-read-rate", Key: "limits.min_read_rate", group: groupServing, Modes: ModeServe, restart: true,
		at:   func(o *Options) any { return &o.Limits.MinReadRate },
		help: "Bytes that a client must read per second; one that falls 10 s behind is disconnected. 1 effectively turns this off."},
	{Flag: "web.enable-lifecycle", group: groupServing, Modes: ModeServe, at: func(o *Options) any { return &o.Lifecycle },
		help: "Enable POST /-/reload, which reads config file and rules again as SIGHUP always does, and POST /-/resolve?uuid=GPU-…, which marks " +
			"the fatal XIDs of a GPU as resolved and which root of this machine may always do."},
	{Flag: "web.hosts", Key: "web_hosts", group: groupServing, placeholder: "NAME", Modes: ModeServe, restart: true, at: func(o *Options) any { return &o.Hosts },
		help: "A name of this proxy that POST requests may have as Host, besides addresses, localhost and the name of this machine; others may be DNS " +
			"rebinding. Repeatable (in the environment: one per line)."},
	{Flag: "web.enable-pprof", group: groupServing, Modes: ModeServe, at: func(o *Options) any { return &o.Pprof },
		help: "Serve Go profiles at /debug/pprof."},
	{Flag: "web.expose-processes", group: groupServing, Modes: ModeServe, needs: "collector.processes",
		at: func(o *Options) any { return &o.ExposeProcesses },
		help: "Show what --collector.processes lists, and the processes in /events, to every client, not only to those on this machine; also use " +
			"--web.config.file with authentication."},

	{Flag: "log.level", group: groupRest, standard: "info", Modes: ModeServe | modeOnce | ModeExport,
		at: func(o *Options) any { return o.Log.Level },
		help: "Only log messages with the given severity or above; with --once and --export warn unless it is given. One of: [" +
			strings.Join(promslog.LevelFlagOptions, ", ") + "]"},
	{Flag: "log.format", group: groupRest, standard: "logfmt", Modes: ModeServe | modeOnce | ModeExport,
		at:   func(o *Options) any { return o.Log.Format },
		help: "Output format of log messages. One of: [" + strings.Join(promslog.FormatFlagOptions, ", ") + "]"},
}
