import { createInbound } from "@gen-operator/runtime";
import { defineWorkflow, type Condition, type ItemsOf } from "@gen-operator/runtime/codegen";
import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

type Equal<Left, Right> = (<T>() => T extends Left ? 1 : 2) extends <T>() => T extends Right ? 1 : 2 ? true : false;
type Expect<Holds extends true> = Holds;

interface Draft {
  readonly owner: string;
}

interface Account extends Draft {
  readonly id: string;
}

interface Credentials {
  readonly id: string;
  readonly token: string;
}

const pushed = createInbound<Account>();

interface Seen {
  readonly account: Account;
  readonly accounts: ItemsOf<Account>;
}

const isReady: Condition<WebPage, Seen, never, Account> = ({ secondary }) => secondary.account.id !== "";

// What is desired lacks the id that the service gives.
export const workflow = defineWorkflow(WebPage)
  .external("account", {
    source: {
      kind: "inbound",
      fetch: (page, { state }): Account[] => [{ id: `${state.size}`, owner: page.kind }],
      channel: pushed,
    },
    idOf: ({ id }) => id,
    state: { kind: "status", path: ["accountId"] },
    desired: ({ primary }) => ({ owner: primary.metadata.name }),
    create: (desired: Draft) => ({ ...desired, id: "1" }),
    update: (desired: Draft, live) => ({ ...live, ...desired }),
    matches: (desired: Draft, live) => desired.owner === live.owner,
  })
  .external("accounts", {
    source: { kind: "eventSource", name: "accounts" },
    bulk: {},
    dependsOn: ["account"],
    idOf: ({ id }: Account) => id,
    state: { kind: "configMap" },
    desired: ({ secondary }) => {
      type Sees = Expect<Equal<typeof secondary.account, Account>>;
      const holds: [Sees] = [true];
      return { a: { owner: `${secondary.account.id}${holds.length}` } };
    },
    create: (desired: Draft) => ({ ...desired, id: "1" }),
    // What it waits for may be gone in a cleanup.
    delete: (_, { secondary }) => {
      type Sees = Expect<Equal<typeof secondary.account, Account | undefined>>;
      const holds: [Sees] = [true];
      return void holds;
    },
    deletePostcondition: ({ secondary }) => {
      type Sees = Expect<Equal<typeof secondary.account, Account | undefined>>;
      const holds: Sees = true;
      return { isMet: holds, detail: secondary.account?.id };
    },
  })
  // A function that says more of its parameter, as it serves both, still fits.
  .external("seats", {
    source: { kind: "eventSource", name: "seats" },
    dependsOn: ["account"],
    idOf: ({ id }: Account) => id,
    desired: ({ secondary }) => secondary.account,
    create: (desired) => desired,
    readyPostcondition: isReady,
    deletePostcondition: isReady,
  })
  .external("credentials", {
    source: {
      kind: "perPrimaryPoll",
      intervalMs: 1000,
      fetch: (page, { state }): Account[] =>
        [...state.values()].map(({ id, token }) => ({ id, owner: token + page.kind })),
    },
    idOf: ({ id }) => id,
    state: { kind: "secret" },
    stateOf: ({ id }: Account): Credentials => ({ id, token: "t" }),
    desired: ({ primary }) => ({ owner: primary.metadata.name }),
    create: (desired: Draft) => ({ ...desired, id: "1" }),
    delete: (_, { state }) => {
      type Kept = Expect<Equal<typeof state, Credentials | undefined>>;
      const holds: [Kept] = [true];
      return void holds;
    },
  });

pushed.put("home/one", { id: "1", owner: "me" });
