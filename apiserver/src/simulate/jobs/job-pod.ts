import type { NewObject } from "../feed/cluster.js";
import type { Container } from "../pods/pod.js";
import { podFrom } from "../workloads/workload.js";
import { type IndexFailures, INDEX, type Job, TRACKING, failureAnnotations } from "./job.js";

const VARIABLE = "JOB_COMPLETION_INDEX";

/** A new Pod of a Job; with an index where the Job is indexed, and with the failures of the index where it has a limit of its own. */
export function jobPod(job: Job, index: number | undefined, failures?: IndexFailures): NewObject {
  const pod = podFrom(job.spec.template, { apiVersion: "batch/v1", kind: "Job", object: job });
  const { metadata } = pod;
  metadata.finalizers = [...(metadata.finalizers ?? []), TRACKING];
  if (index === undefined) {
    metadata.generateName = `${job.metadata.name}-`;
    return pod;
  }
  metadata.generateName = `${job.metadata.name}-${index}-`;
  metadata.labels[INDEX] = String(index);
  metadata.annotations = { ...metadata.annotations, [INDEX]: String(index) };
  if (failures !== undefined) Object.assign(metadata.annotations, failureAnnotations(failures));
  const { initContainers, containers = [] } = pod.spec;
  pod.spec = {
    ...pod.spec,
    hostname: `${job.metadata.name}-${index}`,
    containers: containers.map(withIndex),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(withIndex) }),
  };
  return pod;
}

function withIndex(container: Container): Container {
  const valueFrom = { fieldRef: { fieldPath: `metadata.labels['${INDEX}']` } };
  return { ...container, env: [...(container.env ?? []), { name: VARIABLE, valueFrom }] };
}
