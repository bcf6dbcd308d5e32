// Dependents of Samples that are accounts with a service.
import { keyOf, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import type {
  DependentArguments,
  ExternalArguments,
  ExternalDependent,
} from "#runtime/workflow/workflow-definition.js";
import type { ExternalOrigin } from "#runtime/sources/dependent-sources.js";
import type { Account, AccountDraft, AccountService } from "./account-service.js";
import { dependentController } from "./sample-dependents.js";
import type { Sample } from "../sample-kind.js";
import type { Space, TestOperator } from "../space.js";

/** How often accounts are polled. */
export const EVERY_MS = 20;
/** How long what is created may be missing in lists. */
const GRACE_MS = 300;

/** What functions of these dependents are called with. */
export type Arguments = DependentArguments<Sample, { readonly [name: string]: unknown }>;
type FunctionArguments = ExternalArguments<Sample, object>;

/** Returns whom the accounts of a primary belong to. */
export const ownerOf = ({ metadata }: KubernetesObject) => keyOf(metadata);
/** Builds the primary. */
export const sample = (value = "first", number?: number) => ({
  metadata: { name: "one" },
  spec: { value, ...(number === undefined ? {} : { number }) },
});

/** What a test states of a dependent. */
export type Stated = Partial<Omit<ExternalDependent, "desired" | "source">> & {
  readonly desired?: (args: Arguments) => unknown;
  readonly source?: ExternalOrigin<Sample, never>;
};

/** Returns all accounts, by the primaries that own them. */
export async function byOwner(service: AccountService, isOurs: (account: Account) => boolean = () => true) {
  const all = new Map<ObjectKey, Account[]>();
  for (const account of await service.list())
    if (isOurs(account)) all.set(account.owner as ObjectKey, [...(all.get(account.owner as ObjectKey) ?? []), account]);
  return all;
}

/** A dependent that is an account of the primary; its id is chosen by us. */
export function accountOf(name: string, service: AccountService, rest: Stated = {}): ExternalDependent {
  return {
    name,
    dependsOn: [],
    desired: ({ primary }: Arguments): Account => ({
      id: `${ownerOf(primary)}/${name}`,
      owner: ownerOf(primary),
      value: primary.spec.value ?? "none",
    }),
    source: {
      kind: "poll",
      intervalMs: EVERY_MS,
      fetch: () => byOwner(service, ({ id }) => id.endsWith(`/${name}`)),
    },
    idOf: ({ id }: Account) => id,
    // The lists of this service are never late.
    creationGraceMs: GRACE_MS,
    create: (desired: Account) => service.create(desired),
    update: (desired: Account) => service.update(desired),
    delete: ({ id }: Account) => service.delete(id),
    ...rest,
  } as ExternalDependent;
}

/** A dependent whose accounts get their ids from the service: what they are is found by the state alone. */
export function namelessOf(
  service: AccountService,
  rest: Stated & { state: ExternalDependent["state"] },
): ExternalDependent {
  return accountOf("account", service, {
    desired: ({ primary }) => ({ owner: "nobody", value: primary.spec.value ?? "none" }),
    source: {
      kind: "perPrimaryPoll",
      intervalMs: EVERY_MS,
      fetch: async (_: Sample, { state: ids }: { state: ReadonlyMap<string, string> }) => {
        const found = await Promise.all([...ids.values()].map((id) => service.get(id)));
        return found.filter((each) => each !== undefined);
      },
    },
    update: (desired: AccountDraft, { id }: Account) => service.update({ ...desired, id }),
    delete: (_: Account, { state: id = "" }: FunctionArguments) => service.delete(id),
    matches: (desired: AccountDraft, live: Account) => desired.value === live.value,
    ...rest,
  });
}

/** A bulk dependent with as many accounts as the primary says. */
export function itemsOf({ primary }: Arguments, idOf: (key: string) => object = () => ({})) {
  const keys = Array.from({ length: primary.spec.number ?? 0 }, (_, index) => `n${index}`);
  const account = (key: string) => ({ ...idOf(key), owner: ownerOf(primary), value: primary.spec.value ?? "none" });
  return Object.fromEntries(keys.map((key) => [key, account(key)]));
}

/** Starts an operator with these dependents. */
export const startWith = (space: Space, ...dependents: readonly ExternalDependent[]): Promise<TestOperator> =>
  space.start([dependentController(dependents)]);

/** Waits until the values of all accounts are these. */
export const untilValues = (service: AccountService, ...values: readonly string[]) =>
  waitFor(`the accounts are ${values.join(", ") || "none"}`, () => {
    const found = [...service.accounts.values()].map(({ value }) => value).sort();
    return found.join() === values.join();
  });
