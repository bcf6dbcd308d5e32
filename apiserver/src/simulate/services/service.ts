import type { KubernetesObject } from "../feed/kubernetes-object.js";
import { type Pod, isActive, isFinished } from "../pods/pod.js";
import { selects } from "../feed/selector.js";
import type { Cluster } from "../feed/cluster.js";

/** A port of a Service. */
export interface ServicePort {
  name?: string;
  protocol?: string;
  appProtocol?: string;
  port: number;
  targetPort?: number | string;
}

/** A Service. */
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

/** A port as endpoints have it. */
export interface EndpointPort {
  name: string;
  port: number;
  protocol: string;
  appProtocol?: string;
}

/** The Pods of a Service that have an address, those that are being deleted too. */
export function podsOfService(cluster: Cluster, { metadata, spec }: Service): Pod[] {
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

/** The ports of a Service on one of its Pods; a name that the Pod does not know is no port. */
export function portsOn({ spec }: Service, pod: Pod): EndpointPort[] {
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

/** A reference to the Pod behind an address. */
export function targetRefOf({ metadata: { name, namespace, uid } }: Pod) {
  return { kind: "Pod", namespace, name, uid };
}

/** The keys of the Services that a Pod with these labels may be behind. */
export function servicesOf({ metadata }: KubernetesObject, cluster: Cluster): string[] {
  const services = cluster.list<Service>("services.", metadata.namespace);
  return services
    .filter(({ spec }) => spec.selector !== undefined && selects({ matchLabels: spec.selector }, metadata.labels))
    .map((service) => `${service.metadata.namespace}/${service.metadata.name}`);
}
