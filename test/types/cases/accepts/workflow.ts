import { ready } from "@gen-operator/runtime";
import { defineWorkflow, type ConditionArguments } from "@gen-operator/runtime/codegen";
import {
  ConfigMap,
  Deployment,
  Service,
  WebPage,
  type ConfigMapInput,
  type DeploymentInput,
} from "../../../../fixtures/samples/webpage/src/generated/index.js";
import type {
  DeploymentArguments,
  DeploymentSecondary,
  WebPageReconciler,
} from "../../../../fixtures/samples/webpage/src/generated/webpage/types.js";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;

// A dependent that is waited for is there, any other may be absent.
export type WaitedFor = Expect<Equal<DeploymentSecondary["configMap"], ConfigMap>>;
export type NotWaitedFor = Expect<Equal<DeploymentSecondary["service"], Service | undefined>>;
export type Primary = Expect<Equal<DeploymentArguments["primary"], WebPage>>;
export type Literal = Expect<Equal<WebPage["apiVersion"], "example.com/v1">>;
export type Optional = Expect<Equal<WebPage["spec"]["host"], string | undefined>>;

// The same builder, by hand.
export const byHand = defineWorkflow(WebPage)
  .dependent("configMap", {
    resource: ConfigMap,
    desired: ({ primary }): ConfigMapInput => ({ metadata: { name: primary.metadata.name } }),
  })
  .dependent("deployment", {
    resource: Deployment,
    dependsOn: ["configMap"],
    desired: ({ secondary }): DeploymentInput => {
      type ConfigMapIsThere = Expect<Equal<typeof secondary.configMap, ConfigMap>>;
      const name: ConfigMapIsThere extends true ? string : never = secondary.configMap.metadata.name;
      return { metadata: { name } };
    },
    readyPostcondition: ready,
  })
  .dependent("service", {
    resource: Service,
    dependsOn: ["deployment"],
    desired: async ({ secondary }) => ({ metadata: { name: secondary.configMap.metadata.name } }),
    reconcilePrecondition: ({ primary }: ConditionArguments<WebPage, object>) => primary.spec.exposed === true,
  });

// What an optional dependency leads to may be absent, and with it all that it leads to.
export const optional = defineWorkflow(WebPage)
  .dependent("configMap", { resource: ConfigMap, desired: (): ConfigMapInput => ({ metadata: { name: "x" } }) })
  .dependent("settings", {
    resource: ConfigMap,
    dependsOn: ["configMap"],
    desired: (): ConfigMapInput => ({ metadata: { name: "y" } }),
  })
  .dependent("deployment", {
    resource: Deployment,
    dependsOn: [{ name: "settings", optional: true }],
    desired: ({ secondary }): DeploymentInput => {
      type Both = Expect<Equal<[typeof secondary.settings, typeof secondary.configMap], [Absent, Absent]>>;
      type Absent = ConfigMap | undefined;
      const name: Both extends true ? string : never = secondary.settings?.metadata.name ?? "";
      return { metadata: { name } };
    },
  })
  .dependent("service", {
    resource: Service,
    dependsOn: ["configMap", { name: "settings", optional: true }],
    desired: ({ secondary }) => {
      type There = Expect<Equal<typeof secondary.configMap, ConfigMap>>;
      type Absent = Expect<Equal<typeof secondary.settings, ConfigMap | undefined>>;
      const name: There & Absent extends true ? string : never = secondary.configMap.metadata.name;
      return { metadata: { name } };
    },
  });

// A workflow that the reconciler runs tells of the dependents that it has.
export const running: WebPageReconciler = {
  reconcile: async ({ context }) => {
    const { dependents, notReady } = await context.workflows.get(byHand).reconcile();
    type Names = Expect<Equal<(typeof notReady)[number], "configMap" | "deployment" | "service">>;
    type ByName = Expect<Equal<keyof typeof dependents, (typeof notReady)[number]>>;
    const { notReady: others } = await context.workflows.get("byName").reconcile();
    type Any = Expect<Equal<(typeof others)[number], string>>;
    const areKnown: Names & ByName & Any = true;
    return { status: { ready: areKnown && dependents.service.kind === "unchanged" } };
  },
};

export const cleaning: WebPageReconciler = {
  reconcile: async ({ workflow }) => ({ status: { ready: workflow.dependents.ingress.isReady === true } }),
  cleanup: () => ({ removeFinalizer: true }),
};

export function narrow(object: unknown): string {
  return WebPage.is(object) ? object.spec.html : "";
}
