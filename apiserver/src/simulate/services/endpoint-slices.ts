import type { Controller, ControllerContext } from "../feed/controller.js";
import type { KubernetesObject } from "../feed/kubernetes-object.js";
import { type Pod, controllerReference, isReady, timestamp } from "../pods/pod.js";
import { isSame } from "../pods/same.js";
import { type EndpointPort, type Service, podsOfService, portsOn, servicesOf, targetRefOf } from "./service.js";

interface EndpointSlice extends KubernetesObject {
  addressType: string;
  endpoints: object[];
  ports: EndpointPort[];
}

const KIND = "endpointslices.discovery.k8s.io";
const SERVICE = "kubernetes.io/service-name";
const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER = "endpointslice-controller.k8s.io";
const HEADLESS = "service.kubernetes.io/headless";
const TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time";

/** Keeps the EndpointSlices of Services that select Pods: one for each set of ports. */
export function createEndpointSlices(): Controller<Service> {
  return {
    kind: "services.",
    watches: {
      "pods.": servicesOf,
      [KIND]: ({ metadata }) =>
        metadata.labels?.[MANAGED_BY] === CONTROLLER ? [`${metadata.namespace}/${metadata.labels[SERVICE]}`] : [],
    },
    async reconcile(service, context) {
      const { spec, metadata } = service;
      if (spec.selector === undefined || spec.type === "ExternalName" || metadata.deletionTimestamp !== undefined)
        return;
      const wanted = slicesOf(service, podsOfService(context.cluster, service));
      const present = ownSlices(service, context);
      for (const slice of wanted) {
        const same = present.find(({ ports }) => isSame(ports, slice.ports)) ?? takeIdle(present, wanted);
        if (same !== undefined) present.splice(present.indexOf(same), 1);
        await write(service, { slice, present: same }, context);
      }
      for (const slice of present) await context.cluster.remove(KIND, slice);
    },
  };
}

function ownSlices({ metadata }: Service, { cluster }: ControllerContext): EndpointSlice[] {
  return cluster.list<EndpointSlice>(KIND, metadata.namespace).filter(({ metadata: { labels, deletionTimestamp } }) => {
    const isOwn = labels?.[SERVICE] === metadata.name && labels[MANAGED_BY] === CONTROLLER;
    return isOwn && deletionTimestamp === undefined;
  });
}

/** A slice whose ports nobody has any more. */
function takeIdle(present: EndpointSlice[], wanted: Pick<EndpointSlice, "ports">[]): EndpointSlice | undefined {
  return present.find(({ ports }) => !wanted.some((slice) => isSame(slice.ports, ports)));
}

type Slice = Pick<EndpointSlice, "endpoints" | "ports">;

function slicesOf(service: Service, pods: Pod[]): Slice[] {
  const slices = new Map<string, Slice>();
  for (const pod of pods) {
    const ports = portsOn(service, pod);
    if (ports.length === 0 && (service.spec.ports ?? []).length > 0) continue;
    const key = JSON.stringify(ports);
    const slice = slices.get(key) ?? { ports, endpoints: [] };
    slice.endpoints.push(endpointOf(service, pod));
    slices.set(key, slice);
  }
  // A Service without Pods has a slice that says so.
  return slices.size === 0 ? [{ ports: [], endpoints: [] }] : [...slices.values()];
}

function endpointOf({ metadata, spec }: Service, pod: Pod): object {
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const serving = isReady(pod);
  const { hostname, subdomain, nodeName } = pod.spec;
  const hasName = hostname !== undefined && subdomain === metadata.name;
  return {
    addresses: [pod.status?.podIP],
    conditions: {
      ready: spec.publishNotReadyAddresses === true || (serving && !terminating),
      serving: serving || (spec.publishNotReadyAddresses === true && serving),
      terminating,
    },
    ...(hasName ? { hostname } : {}),
    targetRef: targetRefOf(pod),
    ...(nodeName === undefined ? {} : { nodeName }),
  };
}

async function write(
  service: Service,
  { slice, present }: { slice: Slice; present: EndpointSlice | undefined },
  { cluster, now }: ControllerContext,
): Promise<void> {
  const { name, namespace = "", labels, creationTimestamp } = service.metadata;
  const isHeadless = service.spec.clusterIP === "None";
  const wantedLabels = {
    ...labels,
    [MANAGED_BY]: CONTROLLER,
    [SERVICE]: name,
    ...(isHeadless ? { [HEADLESS]: "" } : {}),
  };
  if (present === undefined) {
    await cluster.create(KIND, {
      metadata: {
        generateName: `${name}-`,
        namespace,
        labels: wantedLabels,
        annotations: { [TRIGGERED]: creationTimestamp ?? timestamp(now()) },
        ownerReferences: [controllerReference("v1", "Service", service)],
      },
      addressType: service.spec.ipFamilies?.[0] ?? "IPv4",
      ...slice,
    });
    return;
  }
  const isUnchanged = isSame(present.ports ?? [], slice.ports) && isSame(present.endpoints ?? [], slice.endpoints);
  if (isUnchanged && isSame(present.metadata.labels, wantedLabels)) return;
  const annotations = { ...present.metadata.annotations, [TRIGGERED]: timestamp(now()) };
  await cluster.update(KIND, {
    ...present,
    metadata: { ...present.metadata, labels: wantedLabels, annotations },
    ...slice,
  });
}
