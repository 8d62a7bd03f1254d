(import 'proxy.libsonnet') +
(import 'gpu.libsonnet') +
(import 'jobs.libsonnet') +
(import 'efficiency.libsonnet') +
(import '../lib/runbooks.libsonnet')
