import fc from "../fast-check.js";
import type { RandomKind } from "./random-kind.js";
import { randomPodSpec } from "./random-pod-spec.js";
import { conditions, container, count, labels, map, some, word } from "./random-values.js";

const template = { metadata: { labels }, spec: { containers: [container] } };
const randomTemplate = some({
  metadata: some({ labels: fc.constantFrom({ app: "web" }, { app: "web", x: "y" }), annotations: map }),
  spec: randomPodSpec,
});

/** Pods and the workloads that create them. */
export const RANDOM_WORKLOADS: RandomKind[] = [
  {
    path: "$deploy",
    kind: "Deployment",
    base: { spec: { selector: { matchLabels: labels }, template } },
    part: some({
      spec: some({
        replicas: count,
        paused: fc.boolean(),
        minReadySeconds: count,
        revisionHistoryLimit: count,
        progressDeadlineSeconds: fc.constantFrom(600, 1, 0),
        strategy: fc.constantFrom<object>(
          { type: "Recreate" },
          { type: "RollingUpdate", rollingUpdate: { maxSurge: 1 } },
          { rollingUpdate: { maxUnavailable: "10%" } },
          {},
        ),
        template: randomTemplate,
      }),
    }),
    status: some({
      replicas: count,
      readyReplicas: count,
      availableReplicas: count,
      observedGeneration: count,
      conditions,
    }),
    scale: true,
  },
  {
    path: "$sts",
    kind: "StatefulSet",
    base: { spec: { serviceName: "a", selector: { matchLabels: labels }, template } },
    part: some({
      spec: some({
        replicas: count,
        serviceName: word,
        podManagementPolicy: fc.constantFrom("Parallel", "OrderedReady"),
        updateStrategy: fc.constantFrom<object>(
          { type: "OnDelete" },
          { type: "RollingUpdate" },
          { rollingUpdate: { partition: 1 } },
        ),
        minReadySeconds: count,
        template: randomTemplate,
        volumeClaimTemplates: fc.constantFrom(
          [],
          [
            {
              metadata: { name: "data" },
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
            },
          ],
        ),
      }),
    }),
    status: some({ replicas: count, readyReplicas: count, currentReplicas: count, conditions }),
    scale: true,
  },
  {
    path: "$ds",
    kind: "DaemonSet",
    base: { spec: { selector: { matchLabels: labels }, template } },
    part: some({
      spec: some({
        minReadySeconds: count,
        updateStrategy: fc.constantFrom<object>(
          { type: "OnDelete" },
          { type: "RollingUpdate" },
          { rollingUpdate: { maxUnavailable: 2 } },
        ),
        template: randomTemplate,
      }),
    }),
    status: some({ numberReady: count, desiredNumberScheduled: count, conditions }),
  },
  {
    path: "$rs",
    kind: "ReplicaSet",
    base: { spec: { selector: { matchLabels: labels }, template } },
    part: some({ spec: some({ replicas: count, minReadySeconds: count, template: randomTemplate }) }),
    status: some({ replicas: count, readyReplicas: count, conditions }),
    scale: true,
  },
  {
    path: "$pod",
    kind: "Pod",
    base: { spec: { containers: [container] } },
    part: some({ spec: randomPodSpec }),
    status: some({
      phase: fc.constantFrom("Running", "Succeeded", "Failed"),
      conditions,
      podIP: fc.constant("192.0.2.1"),
      containerStatuses: fc.constantFrom(
        [{ name: "web", ready: true, restartCount: 0, image: "nginx:1", imageID: "" }],
        [],
      ),
    }),
  },
  {
    path: "$job",
    kind: "Job",
    base: { spec: { template: { spec: { restartPolicy: "Never", containers: [container] } } } },
    part: some({
      spec: some({
        parallelism: count,
        completions: count,
        backoffLimit: count,
        suspend: fc.boolean(),
        ttlSecondsAfterFinished: count,
        activeDeadlineSeconds: count,
        completionMode: fc.constantFrom("Indexed", "NonIndexed"),
      }),
    }),
    status: some({ active: count, succeeded: count, failed: count, startTime: fc.constant("2024-01-01T00:00:00Z") }),
  },
  {
    path: "$cronjob",
    kind: "CronJob",
    base: {
      spec: {
        schedule: "* * * * *",
        jobTemplate: { spec: { template: { spec: { restartPolicy: "Never", containers: [container] } } } },
      },
    },
    part: some({
      spec: some({
        schedule: fc.constantFrom("*/5 * * * *", "@hourly", "never"),
        suspend: fc.boolean(),
        timeZone: fc.constantFrom("Etc/UTC", "Europe/Paris", "No/Where"),
        concurrencyPolicy: fc.constantFrom("Forbid", "Allow", "Replace"),
        startingDeadlineSeconds: count,
        successfulJobsHistoryLimit: count,
      }),
    }),
    status: some({ lastScheduleTime: fc.constant("2024-01-01T00:00:00Z") }),
  },
];
