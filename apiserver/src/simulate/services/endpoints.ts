import type { Cluster } from "../feed/cluster.js";
import type { Controller, ControllerContext } from "../feed/controller.js";
import { type KubernetesObject, isSame, selects } from "../feed/kubernetes-object.js";
import { type Pod, controllerReference, isActive, isFinished, isReady, timestamp } from "../pods/pod.js";

interface ServicePort {
  name?: string;
  protocol?: string;
  appProtocol?: string;
  port: number;
  targetPort?: number | string;
}

export interface Service extends KubernetesObject {
  spec: {
    type?: string;
    clusterIP?: string;
    selector?: Record<string, string>;
    ports?: ServicePort[];
    publishNotReadyAddresses?: boolean;
    ipFamilies?: string[];
  };
}

/** A port of Endpoints or of an EndpointSlice. */
interface EndpointPort {
  name: string;
  port: number;
  protocol: string;
  appProtocol?: string;
}

/** Returns the Pods that a Service selects and that have an IP, including terminating ones. */
function podsOfService(cluster: Cluster, { metadata, spec }: Service): Pod[] {
  const { selector } = spec;
  if (selector === undefined || Object.keys(selector).length === 0) return [];
  const pods = cluster.list<Pod>("pods.", metadata.namespace);
  return pods.filter(
    (pod) =>
      selects({ matchLabels: selector }, pod.metadata.labels) &&
      !isFinished(pod) &&
      pod.status?.podIP !== undefined &&
      (isActive(pod) || pod.spec.nodeName !== undefined),
  );
}

/** Resolves the ports of a Service for a Pod; a named port that the Pod does not have is omitted. */
function portsOn({ spec }: Service, pod: Pod): EndpointPort[] {
  return (spec.ports ?? []).flatMap(({ name = "", protocol = "TCP", appProtocol, port, targetPort = port }) => {
    const number = typeof targetPort === "number" ? targetPort : portNamed(pod, targetPort, protocol);
    if (number === undefined) return [];
    return [
      { name, port: number === 0 ? port : number, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) },
    ];
  });
}

function portNamed({ spec }: Pod, name: string, protocol: string): number | undefined {
  const ports = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap(({ ports = [] }) => ports);
  return ports.find((port) => port.name === name && (port.protocol ?? "TCP") === protocol)?.containerPort;
}

/** Builds the targetRef of an address. */
function targetRefOf({ metadata: { name, namespace, uid } }: Pod) {
  return { kind: "Pod", namespace, name, uid };
}

/** Maps a Pod to the keys of the Services that select its labels. */
function servicesOf({ metadata }: KubernetesObject, cluster: Cluster): string[] {
  const services = cluster.list<Service>("services.", metadata.namespace);
  return services
    .filter(({ spec }) => spec.selector !== undefined && selects({ matchLabels: spec.selector }, metadata.labels))
    .map((service) => `${service.metadata.namespace}/${service.metadata.name}`);
}

interface Endpoints extends KubernetesObject {
  subsets?: Subset[];
}

interface Subset {
  addresses?: object[];
  notReadyAddresses?: object[];
  ports?: Partial<EndpointPort>[];
}

const ENDPOINTS = "endpoints.";
const ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by";
const HEADLESS = "service.kubernetes.io/headless";
const TRIGGERED = "endpoints.kubernetes.io/last-change-trigger-time";

/** Maintains Endpoints of Services with selectors, for clients that do not use EndpointSlices. */
export function createEndpoints(): Controller<Service> {
  return {
    kind: "services.",
    watches: { "pods.": servicesOf, [ENDPOINTS]: ({ metadata }) => [`${metadata.namespace}/${metadata.name}`] },
    async reconcile(service, context) {
      const { spec, metadata } = service;
      if (spec.selector === undefined || spec.type === "ExternalName" || metadata.deletionTimestamp !== undefined)
        return;
      await writeEndpoints(service, subsetsOf(service, podsOfService(context.cluster, service)), context);
    },
    async gone(key, { cluster }) {
      const endpoints = cluster.get<Endpoints>(ENDPOINTS, key);
      if (endpoints?.metadata.labels?.[ENDPOINTS_MANAGED_BY] === "endpoint-controller")
        await cluster.remove(ENDPOINTS, endpoints);
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

async function writeEndpoints(service: Service, subsets: Subset[], { cluster, now }: ControllerContext): Promise<void> {
  const { name, namespace = "", labels } = service.metadata;
  const wantedLabels = {
    ...labels,
    [ENDPOINTS_MANAGED_BY]: "endpoint-controller",
    ...(service.spec.clusterIP === "None" ? { [HEADLESS]: "" } : {}),
  };
  const shown = subsets.length === 0 ? {} : { subsets };
  const present = cluster.get<Endpoints>(ENDPOINTS, `${namespace}/${name}`);
  if (present === undefined) {
    const annotations = { [TRIGGERED]: service.metadata.creationTimestamp ?? timestamp(now()) };
    await cluster.create(ENDPOINTS, { metadata: { name, namespace, labels: wantedLabels, annotations }, ...shown });
    return;
  }
  if (isSame(present.subsets ?? [], subsets) && isSame(present.metadata.labels, wantedLabels)) return;
  const annotations = { ...present.metadata.annotations, [TRIGGERED]: timestamp(now()) };
  const { subsets: _, ...rest } = present;
  await cluster.update(ENDPOINTS, {
    ...rest,
    metadata: { ...present.metadata, labels: wantedLabels, annotations },
    ...shown,
  });
}

interface EndpointSlice extends KubernetesObject {
  addressType: string;
  endpoints: object[];
  ports: EndpointPort[];
}

const ENDPOINT_SLICES = "endpointslices.discovery.k8s.io";
const SERVICE = "kubernetes.io/service-name";
const SLICES_MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER = "endpointslice-controller.k8s.io";

/** Maintains EndpointSlices of Services with selectors: one slice for each set of ports. */
export function createEndpointSlices(): Controller<Service> {
  return {
    kind: "services.",
    watches: {
      "pods.": servicesOf,
      [ENDPOINT_SLICES]: ({ metadata }) =>
        metadata.labels?.[SLICES_MANAGED_BY] === CONTROLLER
          ? [`${metadata.namespace}/${metadata.labels[SERVICE]}`]
          : [],
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
        await writeSlice(service, { slice, present: same }, context);
      }
      for (const slice of present) await context.cluster.remove(ENDPOINT_SLICES, slice);
    },
  };
}

function ownSlices({ metadata }: Service, { cluster }: ControllerContext): EndpointSlice[] {
  return cluster
    .list<EndpointSlice>(ENDPOINT_SLICES, metadata.namespace)
    .filter(({ metadata: { labels, deletionTimestamp } }) => {
      const isOwn = labels?.[SERVICE] === metadata.name && labels[SLICES_MANAGED_BY] === CONTROLLER;
      return isOwn && deletionTimestamp === undefined;
    });
}

/** Returns a slice whose ports are no longer used, so that it can be reused. */
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
  // As in Kubernetes, a Service without Pods has an empty placeholder slice.
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

async function writeSlice(
  service: Service,
  { slice, present }: { slice: Slice; present: EndpointSlice | undefined },
  { cluster, now }: ControllerContext,
): Promise<void> {
  const { name, namespace = "", labels, creationTimestamp } = service.metadata;
  const isHeadless = service.spec.clusterIP === "None";
  const wantedLabels = {
    ...labels,
    [SLICES_MANAGED_BY]: CONTROLLER,
    [SERVICE]: name,
    ...(isHeadless ? { [HEADLESS]: "" } : {}),
  };
  if (present === undefined) {
    await cluster.create(ENDPOINT_SLICES, {
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
  await cluster.update(ENDPOINT_SLICES, {
    ...present,
    metadata: { ...present.metadata, labels: wantedLabels, annotations },
    ...slice,
  });
}
