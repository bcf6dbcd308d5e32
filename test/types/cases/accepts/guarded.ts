import { defineWorkflow, guarded, type Desired, type ItemsOf } from "@gen-operator/runtime/codegen";
import { ConfigMap, WebPage, type ConfigMapInput } from "../../../../fixtures/samples/webpage/src/generated/index.js";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;

type Hosted = WebPage & { readonly spec: { readonly host: {} } };

export type Host = Expect<Equal<Hosted["spec"]["host"], string>>;

export const desired: Desired<WebPage, object, ConfigMapInput, Hosted> = ({ primary, context }) => {
  type OfOthers = Expect<Equal<ReturnType<typeof context.primaries.list>[number], WebPage>>;
  const name: OfOthers extends true ? string : never = primary.spec.host;
  return { metadata: { name } };
};

const all: Desired<WebPage, object, ItemsOf<ConfigMapInput>, Hosted> = ({ primary }) => ({
  [primary.spec.host]: { metadata: { name: primary.spec.host } },
});

export const workflow = defineWorkflow(WebPage)
  .dependent("one", {
    resource: ConfigMap,
    desired: guarded(desired),
    reconcilePrecondition: ({ primary }) => primary.spec.host !== undefined,
  })
  .dependent("all", { resource: ConfigMap, desired: guarded(all), bulk: {}, dependsOn: ["one"] })
  .external("outside", {
    source: { kind: "eventSource", name: "hosts" },
    idOf: ({ metadata }: ConfigMapInput) => metadata.name,
    desired: guarded(desired),
    create: (wanted: ConfigMapInput) => wanted,
    dependsOn: ["all"],
  })
  // One that expects nothing may stand there, too.
  .dependent("any", {
    resource: ConfigMap,
    desired: guarded(({ primary }: { readonly primary: WebPage }): ConfigMapInput => ({
      metadata: { name: primary.metadata.name },
    })),
  });
