// Simulates a cloud controller: assigns IPs to Services of type LoadBalancer.
import { createHash } from "node:crypto";
import type { Controller } from "../feed/controller.js";
import { isSame } from "../feed/kubernetes-object.js";
import type { Service } from "./endpoints.js";

type BalancedService = Service & {
  spec?: { loadBalancerClass?: string };
  status?: { loadBalancer?: { ingress?: object[] } };
};

/** Creates the controller of load balancers. It ignores Services with a loadBalancerClass, which belong to other controllers. */
export function createLoadBalancers(): Controller<BalancedService> {
  return {
    kind: "services.",
    async reconcile(service, { cluster }) {
      const { spec, status, metadata } = service;
      if (metadata.deletionTimestamp !== undefined || spec?.loadBalancerClass !== undefined) return;
      const isBalanced = spec?.type === "LoadBalancer";
      const present = status?.loadBalancer?.ingress ?? [];
      const ingress = isBalanced ? [{ ip: addressOf(metadata.uid), ipMode: "VIP" }] : [];
      if (isSame(present, ingress)) return;
      const loadBalancer = isBalanced ? { ingress } : {};
      await cluster.update("services.", { ...service, status: { ...status, loadBalancer } }, { subresource: "status" });
      if (!isBalanced) return;
      const by = { component: "service-controller" };
      cluster.record("services.", service, { reason: "EnsuredLoadBalancer", message: "Ensured load balancer", by });
    },
  };
}

/** Returns a documentation address (RFC 5737) derived from the UID, so it is stable. */
function addressOf(uid: string): string {
  const [byte = 0] = createHash("sha256").update(uid).digest();
  return `192.0.2.${Math.max(1, Math.min(254, byte))}`;
}
