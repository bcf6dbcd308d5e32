// What anyone can write proves nothing.
//
// A tenant writes labels, annotations and owner references that say that an object of theirs is a dependent of the page of another tenant. The
// operator neither shows it to the functions of that page, nor writes or deletes it, nor is kept busy or held up by it.
import { waitFor } from "#apiserver/wait-for.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import {
  CONTROLLER_LABEL,
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  OBJECT_KEY,
  PRIMARY_NAME,
  PRIMARY_NAMESPACE,
  PRIMARY_TYPE,
  PRIMARY_UID,
} from "#runtime/base/primary-link.js";
import fc from "../../../../support/fast-check.js";
import { attempt } from "../model/world.js";
import { Page, Secret, textController, type DataObject } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
import { scenesOf, Site, type Scene } from "./scene.js";

const NAME = "one";
const TRAP = "trap";
const EDITS = 30;
/** The first edit may be noticed, and the last one. */
const MOST_RECONCILES = 2;

type Place = "home" | "stated" | "computed";

/** A dependent of the page, and where its object is. */
const DEPENDENTS = {
  garbageCollected: { place: "home", options: {} },
  put: { place: "home", options: { serverSideApply: false } },
  createOnly: { place: "home", options: { mode: "createOnly" } },
  bulk: { place: "home", options: { bulk: {} } },
  ordered: { place: "home", options: { deletion: "ordered" } },
  orphan: { place: "home", options: { deletion: "orphan" } },
  readOnly: { place: "home", options: { mode: "readOnly" } },
  stated: { place: "stated", options: { deletion: "ordered" } },
  computed: { place: "computed", options: { deletion: "ordered" } },
  ofSite: { place: "stated", options: {}, isOfSite: true },
  computedOfSite: { place: "computed", options: {}, isOfSite: true },
  orderedOfSite: { place: "computed", options: { deletion: "ordered" }, isOfSite: true },
} as const satisfies { readonly [name: string]: { place: Place; options: object; isOfSite?: true } };

interface Case {
  readonly dependent: keyof typeof DEPENDENTS;
  /** Whether the tenant writes beside the page, or in another namespace that the operator watches. */
  readonly from: "beside" | "elsewhere";
  /** Which uid the tenant writes into an owner reference, if any. */
  readonly uid: "none" | "false" | "true";
  /** Whether the tenant copies the annotations of the object of the page, as far as there is one. */
  readonly isCopied?: boolean;
  /** Whether the object of the tenant is controlled by an object of theirs. */
  readonly isControlled?: boolean;
  /** Whether `desired` keeps the name of the live object. */
  readonly keepsName?: boolean;
  /** Whether the workflow leaves objects that no dependent wants. */
  readonly isPruned?: false;
  readonly commands: readonly Command[];
}

/** Who knows the uid and may write where the object is expected is believed: they may write the object itself, too. */
const isPromised = ({ dependent, from, uid, isCopied = false, isControlled = false }: Case): boolean =>
  // A read-only dependent shows objects that others own.
  (uid !== "true" && !isCopied) || (isControlled && dependent !== "readOnly") || from === "elsewhere";

const encode = (text: string) => Buffer.from(text).toString("base64");
const THEIRS = encode("tenant");

class Tenancy {
  readonly scene: Scene;
  readonly case: Case;
  readonly kind: typeof Page;
  readonly name: string;
  text = "first";
  /** The version of the object of the tenant that the tenant wrote last. */
  version: string | undefined;
  trapNamespace = "";
  readonly #stolen = new Set<string>();

  constructor(scene: Scene, one: Case) {
    this.scene = scene;
    this.case = one;
    this.kind = this.isOfSite ? (Site as typeof Page) : Page;
    this.name = this.isOfSite ? scene.id : NAME;
  }

  get isOfSite(): boolean {
    return "isOfSite" in DEPENDENTS[this.case.dependent];
  }

  get tenant(): string {
    return `${this.scene.id}-tenant`;
  }

  get ref() {
    return this.isOfSite ? { name: this.name } : { name: this.name, namespace: this.scene.namespace };
  }

  get secretNamespace(): string {
    return DEPENDENTS[this.case.dependent].place === "home" ? this.scene.namespace : `${this.scene.id}-stated`;
  }

  async open(): Promise<void> {
    const { scene, tenant, isOfSite } = this;
    await scene.createNamespace(tenant);
    const { place, options } = DEPENDENTS[this.case.dependent];
    if (place !== "home") await scene.createNamespace(this.secretNamespace);
    this.trapNamespace = this.case.from === "beside" ? this.secretNamespace : tenant;
    const isBulk = "bulk" in options;
    const isReadOnly = "mode" in options && options.mode === "readOnly";
    const look = (seen: unknown) => {
      if (JSON.stringify(seen ?? {}).includes(THEIRS)) this.#stolen.add("secondary shows the object of the tenant");
    };
    const desired = ({ primary, secondary }: { primary: Page; secondary: { secret?: DataObject } }) => {
      look(secondary.secret);
      const live = isBulk ? (secondary.secret as { a?: DataObject } | undefined)?.a : secondary.secret;
      const name = (this.case.keepsName ? live?.metadata.name : undefined) ?? `${this.name}-secret`;
      const namespace = place === "computed" ? { namespace: this.secretNamespace } : {};
      const object = { metadata: { name, ...namespace }, data: { text: encode(primary.spec.text) } };
      return isBulk ? { a: object } : object;
    };
    const dependents = [
      {
        ...{ name: "secret", resource: Secret.definition, dependsOn: [], ...options },
        ...(isReadOnly ? {} : { desired }),
        ...(place === "stated" ? { namespace: this.secretNamespace } : {}),
      },
    ];
    const namespaces = isOfSite ? ("all" as const) : [scene.namespace, tenant, `${scene.id}-stated`];
    const labelSelector = `scene=${scene.id}`;
    const reconciler = {
      reconcile: ({ secondary }: { secondary: { secret?: unknown } }) => look(secondary.secret),
    };
    const primary = this.kind.definition;
    const workflow = { pruning: this.case.isPruned ?? true };
    await scene.start(textController(scene, { dependents, primary, workflow, namespaces, labelSelector, reconciler }));
  }

  /** Writes the object of the tenant as a dependent of the page. */
  async forge(more: object = {}): Promise<void> {
    const { scene, tenant, isOfSite, name, trapNamespace: namespace } = this;
    const { uid, isControlled, dependent, isCopied } = this.case;
    const copied = isCopied ? await scene.get(Secret, `${name}-secret`, this.secretNamespace) : undefined;
    const victim = await scene.client.get(this.kind, this.ref);
    const uidOf = { none: undefined, false: "00000000-0000-4000-8000-000000000000", true: victim?.metadata.uid };
    const { apiVersion, kind, group } = this.kind.definition;
    const owner = uidOf[uid] && { apiVersion, kind, name, uid: uidOf[uid] };
    const theirs = { apiVersion: "v1", kind: "ConfigMap", name: "theirs", uid: "00000000-0000-4000-8000-000000000001" };
    const metadata = {
      ...{ name: TRAP, namespace, ...more },
      labels: { [CONTROLLER_LABEL]: scene.id },
      annotations: {
        [PRIMARY_NAME]: name,
        [PRIMARY_TYPE]: `${kind}.${group}`,
        ...(isOfSite ? {} : { [PRIMARY_NAMESPACE]: scene.namespace }),
        [DEPENDENT_NAME]: "secret",
        ...(dependent === "bulk" ? { [DEPENDENT_ITEM]: "a" } : {}),
        ...(uidOf[uid] === undefined ? {} : { [PRIMARY_UID]: uidOf[uid] }),
        ...copied?.metadata.annotations,
        [OBJECT_KEY]: keyOf({ namespace, name: TRAP }),
      },
      ownerReferences: [...(owner ? [owner] : []), ...(isControlled ? [{ ...theirs, controller: true }] : [])],
    };
    const object = { metadata, data: { by: THEIRS, tenant: encode(tenant) } };
    await attempt(async () => {
      const written = await scene.client.create(Secret, object);
      this.version = written.metadata.resourceVersion;
    });
  }

  async change(patch: object): Promise<void> {
    const { client } = this.scene;
    if (this.version === undefined) return;
    await attempt(async () => {
      const written = await client.mergePatch(Secret, { name: TRAP, namespace: this.trapNamespace }, patch);
      this.version = written.metadata.resourceVersion;
    });
  }

  async check(after: string): Promise<void> {
    const { problems } = this.scene;
    if (this.version !== undefined) {
      const trap = await this.scene.get(Secret, TRAP, this.trapNamespace);
      const isDeleted = trap === undefined || trap.metadata.deletionTimestamp !== undefined;
      if (isDeleted) problems.push(`the object of the tenant was deleted after "${after}"`);
      else if (trap.metadata.resourceVersion !== this.version)
        problems.push(`the object of the tenant was written after "${after}"`);
      this.version = isDeleted ? undefined : trap.metadata.resourceVersion;
    }
    problems.push(...this.#stolen);
    this.#stolen.clear();
  }

  /** What is not as the page says. */
  async differences(): Promise<string[]> {
    const { scene } = this;
    const { dependent } = this.case;
    const secret = await scene.get(Secret, `${this.name}-secret`, this.secretNamespace);
    const last = scene.events.findLast(({ primary }) => primary === keyOf(this.ref));
    if (dependent === "readOnly") return last?.workflow?.isReady ? ["a page without its object is ready"] : [];
    const isKept = dependent === "createOnly";
    return [
      ...(secret === undefined || (!isKept && secret.data?.["text"] !== encode(this.text))
        ? ["the object of the page is not as desired"]
        : []),
      ...(last?.error === undefined && last?.workflow?.isReady ? [] : ["the page is not ready"]),
    ];
  }
}

const COMMANDS = {
  "create page": ({ scene, kind, ref, text }: Tenancy) =>
    attempt(() => scene.client.create(kind, { metadata: { ...ref, labels: { scene: scene.id } }, spec: { text } })),
  "edit page": (world: Tenancy) => {
    world.text = `${world.text}+`;
    return attempt(() => world.scene.client.mergePatch(world.kind, world.ref, { spec: { text: world.text } }));
  },
  "the tenant forges a link": (world: Tenancy) => world.forge(),
  "the tenant forges a link with a finalizer": (world: Tenancy) => world.forge({ finalizers: ["example.com/held"] }),
  "the tenant deletes it": async ({ scene, trapNamespace: namespace, ...world }: Tenancy) => {
    if (world.version === undefined) return;
    await attempt(() => scene.client.mergePatch(Secret, { name: TRAP, namespace }, { metadata: { finalizers: null } }));
    await attempt(() => scene.client.delete(Secret, { name: TRAP, namespace }));
  },
  "the tenant edits it often": async (world: Tenancy) => {
    const before = world.scene.events.length;
    for (let edit = 0; edit < EDITS; edit++) {
      await world.change({ data: { edit: encode(String(edit)) } });
      // An edit that is noticed has its own reconcile.
      await waitFor("a turn", () => true, { intervalMs: 0 });
    }
    await world.scene.quiet();
    const caused = world.scene.events.length - before;
    if (caused > MOST_RECONCILES) world.scene.problems.push(`${EDITS} edits of the tenant caused ${caused} reconciles`);
  },
  "restart the operator": ({ scene }: Tenancy) => scene.start(),
} as const;
type Command = keyof typeof COMMANDS;

async function play(scene: Scene, one: Case): Promise<void> {
  const world = new Tenancy(scene, one);
  await world.open();
  try {
    for (const command of one.commands) {
      await COMMANDS[command](world);
      if (command === "the tenant deletes it") world.version = undefined;
      await scene.quiet();
      await world.check(command);
    }
    if ((await scene.client.get(world.kind, world.ref)) === undefined) return;
    await scene.until("as the page says", () => world.differences());
    await scene.client.delete(world.kind, world.ref);
    const isGone = async () => (await scene.client.get(world.kind, world.ref)) === undefined;
    await scene.until("the page is gone", isGone);
    await scene.quiet();
    await world.check("delete page");
  } finally {
    // A page of the whole cluster that stays would be seen by no one else.
    await attempt(() => scene.client.mergePatch(world.kind, world.ref, { metadata: { finalizers: null } }));
    await attempt(() => scene.client.delete(world.kind, world.ref));
  }
}

const sequences = {
  after: ["create page", "the tenant forges a link", "edit page", "restart the operator"],
  before: ["the tenant forges a link with a finalizer", "create page", "edit page"],
  often: ["create page", "the tenant forges a link", "the tenant edits it often"],
} as const satisfies { readonly [when: string]: readonly Command[] };

const scenarios: Scenario<Case>[] = [];
function add(
  when: keyof typeof sequences,
  dependents: readonly Case["dependent"][],
  rest: Omit<Case, "dependent" | "commands">,
) {
  const titles = {
    after: "is neither passed to functions nor written or deleted",
    before: "does not block the primary if it existed before",
    often: "does not trigger reconciles when it is edited",
  };
  for (const dependent of dependents) {
    const facts = [dependent, rest.from, `${rest.uid === "none" ? "no" : `a ${rest.uid}`} uid`];
    const more = [
      rest.isControlled && "controlled",
      rest.keepsName && "name kept",
      rest.isPruned === false && "not pruned",
    ].filter((each) => each);
    const title = `${titles[when]} (${[...facts, ...more].join(", ")})`;
    scenarios.push({ seed: scenarios.length + 1, title, case: { dependent, ...rest, commands: sequences[when] } });
  }
}
add("after", ["garbageCollected", "put", "bulk", "ordered", "orphan", "readOnly", "computed"], {
  from: "elsewhere",
  uid: "none",
});
add("after", ["garbageCollected", "createOnly", "ordered"], { from: "elsewhere", uid: "true" });
add("after", ["garbageCollected", "ordered", "stated", "computed"], { from: "beside", uid: "false" });
add("after", ["garbageCollected", "ordered"], { from: "elsewhere", uid: "none", keepsName: true });
add("after", ["garbageCollected", "ordered"], { from: "beside", uid: "true", isControlled: true });
add("after", ["ofSite", "computedOfSite", "orderedOfSite"], { from: "elsewhere", uid: "false" });
add("after", ["ofSite"], { from: "elsewhere", uid: "true" });
add("before", ["garbageCollected", "ordered", "bulk"], { from: "elsewhere", uid: "none" });
add("often", ["garbageCollected", "ordered", "stated"], { from: "elsewhere", uid: "none" });
add("often", ["orderedOfSite"], { from: "elsewhere", uid: "false" });
add("often", ["readOnly"], { from: "elsewhere", uid: "none" });
add("often", ["garbageCollected", "ordered"], { from: "elsewhere", uid: "none", isPruned: false });
add("after", ["garbageCollected", "bulk", "put"], { from: "elsewhere", uid: "none", isPruned: false });
add("after", ["computed", "computedOfSite", "orderedOfSite"], { from: "elsewhere", uid: "true" });
add("after", ["ordered", "computed", "computedOfSite"], { from: "elsewhere", uid: "true", isCopied: true });
add("often", ["garbageCollected", "ordered"], { from: "beside", uid: "true", isControlled: true });

const cases: fc.Arbitrary<Case> = fc
  .record({
    dependent: fc.constantFrom(...(Object.keys(DEPENDENTS) as Case["dependent"][])),
    from: fc.constantFrom("beside", "elsewhere"),
    uid: fc.constantFrom("none", "false", "true"),
    isCopied: fc.boolean(),
    isControlled: fc.boolean(),
    keepsName: fc.boolean(),
    commands: fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Command[])), { minLength: 2, maxLength: 7 }),
  })
  .map(({ commands, ...rest }) => ({ ...rest, commands: ["create page", ...commands] }) as Case)
  .filter(isPromised);

declareLaw<Case>({
  name: "tenant",
  title: "object with a forged link",
  open: scenesOf(),
  scenarios,
  play,
  explored: {
    title: "is not passed to functions, written, deleted or waited for, for random writes of a tenant",
    cases: isBroken("tenant") ? undefined : cases,
  },
});
