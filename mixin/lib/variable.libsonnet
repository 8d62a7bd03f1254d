// Variables that dashboards share; each is a function of _config.
local labels = import 'labels.libsonnet';
local q = import 'query.libsonnet';

local query(name, label, text, multi=true) = {
  type: 'query',
  name: name,
  label: label,
  datasource: { type: 'prometheus', uid: '${datasource}' },
  query: { query: text, refId: 'variable' },
  regex: '',
  refresh: 2,  // when the time range changes
  sort: 7,  // natural, ascending
  multi: multi,
  includeAll: multi,
  [if multi then 'allValue']: '.*',
  [if multi then 'current']: { text: ['All'], value: ['$__all'] },
  options: [],
  hide: 0,
  skipUrlSync: false,
};

{
  datasource(c):: {
    type: 'datasource',
    name: 'datasource',
    label: 'Data source',
    query: 'prometheus',
    regex: c.datasourceFilterRegex,
    current: { text: c.datasourceName, value: c.datasourceName },
    multi: false,
    includeAll: false,
    options: [],
    refresh: 1,
    hide: 0,
    skipUrlSync: false,
  },

  // one limits a variable to exactly one value; without any to choose, as on series without clusters, it is
  // empty.
  one(variable):: variable { multi: false, includeAll: false, allValue:: null, current:: null },

  cluster(c):: query(
    'cluster', 'Cluster', 'label_values(kpulse_gpu_info%s, %s)' % [c.kpulseOnly, c.clusterLabel]
  ) { hide: if c.showMultiCluster then 0 else 2 },

  hostname(c):: query(
    'hostname', 'Host', 'label_values(kpulse_gpu_present{%s%s=~"$cluster"}, hostname)' % [c.kpulseMatchers, c.clusterLabel]
  ),

  // gpu selects by uuid, since an index means another board on every host, and shows host and index, with the
  // cluster if there is one. A proxy reports a missing board for an hour, the rules for a day.
  gpu(c, multi=true):: query(
    'gpu',
    'GPU',
    'query_result(label_join(label_join(max by (%s) (last_over_time(kpulse_gpu_present{%s%s=~"$cluster", hostname=~"$hostname", uuid!=""}[1h]) or device:kpulse_gpu_gone:timestamp{%s=~"$cluster", hostname=~"$hostname", uuid!=""}), "board", " GPU ", "hostname", "gpu"), "board", " ", "%s", "board"))' % [labels.board(c), c.kpulseMatchers, c.clusterLabel, c.clusterLabel, c.clusterLabel],
    multi
  ) { regex: '/board=" ?(?<text>[^"]+)|uuid="(?<value>[^"]+)/g' },

  namespace(c):: query(
    'namespace', 'Namespace', 'label_values(kpulse_allocation_info{%s%s=~"$cluster"}, workload_namespace)' % [c.kpulseMatchers, c.clusterLabel]
  ),

  job(c):: query(
    'hpc_job', 'Job', 'label_values(kpulse_allocation_info{%s%s=~"$cluster"}, hpc_job)' % [c.kpulseMatchers, c.clusterLabel]
  ),

  user(c):: query(
    'hpc_user', 'User', 'label_values(kpulse_allocation_info{%s%s=~"$cluster"}, hpc_user)' % [c.kpulseMatchers, c.clusterLabel]
  ),

  account(c):: query(
    'hpc_account', 'Account', 'label_values(kpulse_allocation_info{%s%s=~"$cluster"}, hpc_account)' % [c.kpulseMatchers, c.clusterLabel]
  ),

  // jobParts returns the variables of a page of one job: `job`, a job of a batch system by its id or a workload of
  // Kubernetes as NAMESPACE/KIND/NAME, and hidden ones that follow from it. These select its series: a regular
  // expression for each label of a holder, and its hosts, by which series of boards are read. Before anything is
  // chosen, `-` selects nothing. The choice stays when the time range no longer covers it.
  jobParts(c)::
    local held = 'last_over_time(holder:kpulse_allocation_held_gpus:rate5m{%s=~"$cluster", %s}[$__range])';
    local hidden = { hide: 2, skipUrlSync: true };
    // Of an id, or of the parts of a workload.
    local part(name, ofId, ofWorkload) = query(
      name, name, 'query_result(%s)' % std.foldl(
        function(inner, to) 'label_replace(%s, "%s", "%s", "job", "%s")' % [inner, to[0], to[1], to[2]],
        [['job', '$job', '.*'], ['part', '-', '.*'], ['part', ofId, '([^/]+)'], ['part', ofWorkload, '([^/]*)/([^/]*)/([^/]*)']],
        'vector(0)'
      ), multi=false
    ) { regex: '/part="([^"]+)"/' } + hidden;
    [
      query(
        'job',
        'Job',
        'query_result(label_replace(group by (hpc_job) (%s), "job", "$1", "hpc_job", "(.+)") or label_join(group by (workload_namespace, workload_kind, workload_name) (%s), "job", "/", "workload_namespace", "workload_kind", "workload_name"))'
        % [held % [c.clusterLabel, 'hpc_job!=""'], held % [c.clusterLabel, 'hpc_job="", workload_name!=""']],
        multi=false
      ) { regex: '/job="([^"]+)"/', refresh: 1 },
      part('hpc_job', '$1', ''),
      part('workload_namespace', '.*', '$1'),
      part('workload_kind', '.*', '$2'),
      part('workload_name', '.*', '$3'),
      query('hostname', 'Hosts', 'label_values(allocation:kpulse_allocation_held_gpus:rate5m%s, hostname)' % q.ofJob(c)) { allValue:: null } + hidden,
    ],

  instance(c):: query(
    'instance', 'Proxy', 'label_values(kpulse_build_info{%s%s=~"$cluster"}, instance)' % [c.kpulseMatchers, c.clusterLabel]
  ),

  model(c):: query(
    'model', 'Model', 'label_values(kpulse_gpu_info{%s%s=~"$cluster"}, model)' % [c.kpulseMatchers, c.clusterLabel]
  ),
}
