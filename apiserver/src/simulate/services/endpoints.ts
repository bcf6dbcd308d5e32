import type { Controller, ControllerContext } from "../feed/controller.js";
import type { KubernetesObject } from "../feed/kubernetes-object.js";
import { type Pod, isReady, timestamp } from "../pods/pod.js";
import { isSame } from "../pods/same.js";
import { type EndpointPort, type Service, podsOfService, portsOn, servicesOf, targetRefOf } from "./service.js";

interface Endpoints extends KubernetesObject {
  subsets?: Subset[];
}

interface Subset {
  addresses?: object[];
  notReadyAddresses?: object[];
  ports?: Partial<EndpointPort>[];
}

const KIND = "endpoints.";
const MANAGED_BY = "endpoints.kubernetes.io/managed-by";
const HEADLESS = "service.kubernetes.io/headless";
const TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time";

/** Keeps the Endpoints of Services that select Pods, for clients that do not read EndpointSlices. */
export function createEndpoints(): Controller<Service> {
  return {
    kind: "services.",
    watches: { "pods.": servicesOf, [KIND]: ({ metadata }) => [`${metadata.namespace}/${metadata.name}`] },
    async reconcile(service, context) {
      const { spec, metadata } = service;
      if (spec.selector === undefined || spec.type === "ExternalName" || metadata.deletionTimestamp !== undefined)
        return;
      await write(service, subsetsOf(service, podsOfService(context.cluster, service)), context);
    },
    async gone(key, { cluster }) {
      const endpoints = cluster.get<Endpoints>(KIND, key);
      if (endpoints?.metadata.labels?.[MANAGED_BY] === "endpoint-controller") await cluster.remove(KIND, endpoints);
    },
  };
}

function subsetsOf(service: Service, pods: Pod[]): Subset[] {
  const subsets = new Map<string, Subset>();
  for (const pod of pods) {
    if (pod.metadata.deletionTimestamp !== undefined && service.spec.publishNotReadyAddresses !== true) continue;
    const ports = portsOn(service, pod).map(({ name, ...port }) => (name === "" ? port : { name, ...port }));
    if (ports.length === 0 && (service.spec.ports ?? []).length > 0) continue;
    const key = JSON.stringify(ports);
    const subset: Subset = subsets.get(key) ?? { ports };
    subsets.set(key, subset);
    const isShown = isReady(pod) || service.spec.publishNotReadyAddresses === true;
    const list = isShown ? "addresses" : "notReadyAddresses";
    subset[list] = [...(subset[list] ?? []), addressOf(service, pod)];
  }
  return [...subsets.values()].map(({ ports = [], ...addresses }) => ({
    ...addresses,
    ...(ports.length === 0 ? {} : { ports }),
  }));
}

function addressOf({ metadata }: Service, pod: Pod): object {
  const { hostname, subdomain, nodeName } = pod.spec;
  return {
    ip: pod.status?.podIP,
    ...(hostname !== undefined && subdomain === metadata.name ? { hostname } : {}),
    ...(nodeName === undefined ? {} : { nodeName }),
    targetRef: targetRefOf(pod),
  };
}

async function write(service: Service, subsets: Subset[], { cluster, now }: ControllerContext): Promise<void> {
  const { name, namespace = "", labels } = service.metadata;
  const wantedLabels = {
    ...labels,
    [MANAGED_BY]: "endpoint-controller",
    ...(service.spec.clusterIP === "None" ? { [HEADLESS]: "" } : {}),
  };
  const shown = subsets.length === 0 ? {} : { subsets };
  const present = cluster.get<Endpoints>(KIND, `${namespace}/${name}`);
  if (present === undefined) {
    const annotations = { [TRIGGERED]: service.metadata.creationTimestamp ?? timestamp(now()) };
    await cluster.create(KIND, { metadata: { name, namespace, labels: wantedLabels, annotations }, ...shown });
    return;
  }
  if (isSame(present.subsets ?? [], subsets) && isSame(present.metadata.labels, wantedLabels)) return;
  const annotations = { ...present.metadata.annotations, [TRIGGERED]: timestamp(now()) };
  const { subsets: _, ...rest } = present;
  await cluster.update(KIND, {
    ...rest,
    metadata: { ...present.metadata, labels: wantedLabels, annotations },
    ...shown,
  });
}
