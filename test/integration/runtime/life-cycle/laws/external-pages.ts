// A dependent of pages that is a resource of an eventually consistent service, and what happens to it.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { ExternalDependent } from "#runtime/workflow/workflow-definition.js";
import type { EventualService, Resource } from "./eventual-service.js";
import type { Page } from "./kinds.js";

/** How resources are found. */
export interface Found {
  readonly isBulk: boolean;
  /** Where ids are kept; `none`: the service lists the resources of an owner. */
  readonly state: "none" | "configMap" | "secret" | "status";
}

type Wanted = Omit<Resource, "id" | "owner">;

export const ownerOf = ({ metadata: { namespace, name } }: KubernetesObject) => `${namespace}/${name}`;
/** The items that a page wants: the letters of `more`. */
export const itemsOf = ({ spec }: Page) => [...(spec.more ?? "a")];

/** Returns the dependent `resource`, which is created, updated and deleted with the service. */
export function resourceOf(service: EventualService, { isBulk, state }: Found): ExternalDependent {
  const wantedOf = (page: Page, item: string): Wanted => ({ item, value: page.spec.text });
  const states = {
    none: undefined,
    configMap: { kind: "configMap" },
    secret: { kind: "secret" },
    status: { kind: "status", path: ["text"] },
  } as const;
  const dependent = {
    name: "resource",
    dependsOn: [],
    source: {
      kind: "perPrimaryPoll",
      intervalMs: 20,
      fetch: (page: Page, { state: ids }: { state: ReadonlyMap<string, string> }) =>
        state === "none" ? service.list(ownerOf(page)) : [...ids.values()].flatMap((id) => service.get(id) ?? []),
    },
    idOf: ({ id = "" }: Partial<Resource>) => id,
    // Longer than reads are late in a case, and shorter than a case waits for its end.
    creationGraceMs: 3_000,
    ...(state === "none" ? {} : { state: states[state] }),
    ...(isBulk ? { bulk: {} } : {}),
    desired: ({ primary }: { primary: Page }) =>
      isBulk
        ? Object.fromEntries(itemsOf(primary).map((item) => [item, wantedOf(primary, item)]))
        : wantedOf(primary, ""),
    create: (wanted: Wanted, { primary }: { primary: Page }) => service.create({ ...wanted, owner: ownerOf(primary) }),
    update: ({ value }: Wanted, { id }: Resource) => service.update(id, value),
    delete: ({ id }: Resource) => service.delete(id),
    matches: (wanted: Wanted, live: Resource) => wanted.value === live.value,
  };
  return dependent as unknown as ExternalDependent;
}
