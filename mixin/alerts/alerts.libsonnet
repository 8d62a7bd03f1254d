(import 'proxy.libsonnet') +
(import 'gpu.libsonnet') +
(import 'actions.libsonnet') +
(import 'jobs.libsonnet') +
(import 'efficiency.libsonnet') +
(import '../lib/runbooks.libsonnet') +
(import '../lib/pages.libsonnet')
