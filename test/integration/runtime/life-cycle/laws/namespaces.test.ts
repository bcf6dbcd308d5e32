// Failures are local: a namespace that cannot be read, or a kind in it, holds up nothing else, and what is not known there is not taken for empty.
import { keyOf, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { isRealApiServer } from "../../../../support/api/api-server.js";
import fc from "../../../../support/fast-check.js";
import { attempt } from "../model/world.js";
import { allowIn, forbidIn } from "../user-rights.js";
import { ConfigMap, Page, Secret, textController, type DataObject } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
import { scenesOf, type Scene } from "./scene.js";

const INPUTS = ["x", "y"];
const Missing = untypedResource({
  ...{ apiVersion: "missing.example.com/v1", kind: "Missing", plural: "missings", scope: "Namespaced" },
});

const RESOURCES = { Page: "pages", Secret: "secrets", ConfigMap: "configmaps" };
const READ = ["get", "list", "watch"];
const WRITE = ["create", "update", "patch", "delete"];
const ALL = [{ resources: [...Object.values(RESOURCES), "pages/status", "events", "missings"], verbs: ["*"] }];

interface Case {
  /** What cannot be read in the second namespace: everything, or the pages, their objects or the inputs. */
  readonly unreadable: "everything" | "Page" | "Secret" | "ConfigMap";
  /** Why not: the server answers so, or the operator has no right to it. */
  readonly by: "faults" | "rights";
  /** Whether the controller has an event source of a kind that the cluster lacks. */
  readonly hasMissingKind?: boolean;
  /** Whether the controller watches another namespace at first. */
  readonly startsElsewhere?: boolean;
  readonly commands: readonly Command[];
}

type Rule = ReturnType<Scene["faults"]["add"]>;

class World {
  readonly scene: Scene;
  readonly case: Case;
  readonly rules: Rule[] = [];
  readonly readable: string;
  readonly other: string;
  text = "text-0";
  /** The objects of pages that live, by namespace, with their uids. */
  readonly #seen = new Map<string, string | undefined>();
  #texts = 0;

  constructor(scene: Scene, one: Case) {
    this.scene = scene;
    this.case = one;
    this.readable = scene.namespace;
    this.other = `${scene.namespace}-b`;
  }

  get namespaces(): readonly string[] {
    return [this.readable, this.other];
  }

  async open(): Promise<void> {
    const { scene } = this;
    await scene.createNamespace(this.other);
    if (this.case.by === "rights") {
      await scene.restrict();
      for (const namespace of ["default", ...this.namespaces]) await allowIn(scene, scene.id, namespace, ALL);
    }
    for (const namespace of this.namespaces)
      for (const name of INPUTS)
        await scene.client.create(ConfigMap, { metadata: { name, namespace, labels: { input: scene.id } } });
  }

  async launch(): Promise<void> {
    const { scene, namespaces } = this;
    const mapper = ({ metadata: { namespace } }: KubernetesObject): ObjectKey[] => [keyOf({ name: "one", namespace })];
    const desired = ({ primary, secondary }: { primary: Page; secondary: { inputs: readonly DataObject[] } }) =>
      Object.fromEntries(
        secondary.inputs.map(({ metadata: { name } }) => {
          const data = { text: Buffer.from(primary.spec.text).toString("base64") };
          return [name, { metadata: { name: `one-${name}` }, data }];
        }),
      );
    const items = { name: "items", resource: Secret.definition, dependsOn: [], bulk: {}, deletion: "ordered", desired };
    const eventSources = () => [
      informerSource({ name: "inputs", resource: ConfigMap, labelSelector: `input=${scene.id}`, mapper }),
      ...(this.case.hasMissingKind ? [informerSource({ name: "missing", resource: Missing, mapper })] : []),
    ];
    const watched = this.case.startsElsewhere ? ["default"] : namespaces;
    await scene.launch(textController(scene, { dependents: [items], namespaces: watched, eventSources }));
  }

  async hide(): Promise<void> {
    if (this.case.by === "rights") return this.#forbid();
    const { faults, id: user } = this.scene;
    const { unreadable } = this.case;
    const scope = { user, namespace: this.other, ...(unreadable === "everything" ? {} : { kind: unreadable }) };
    const verbs = unreadable === "everything" ? {} : { verb: READ };
    this.rules.push(faults.add({ ...scope, ...verbs, forbid: true }));
    faults.endWatches(scope);
  }

  async show(): Promise<void> {
    for (const rule of this.rules.splice(0)) rule.remove();
    if (this.case.by === "faults") return;
    await allowIn(this.scene, this.scene.id, this.other, ALL);
  }

  async #forbid(): Promise<void> {
    const { scene, other, case: one } = this;
    const { unreadable } = one;
    if (unreadable === "everything") await forbidIn(scene, scene.id, other);
    else {
      const resource = RESOURCES[unreadable];
      const others = ALL.map(({ resources, verbs }) => ({
        resources: resources.filter((each) => each !== resource),
        verbs,
      }));
      await allowIn(scene, scene.id, other, [...others, { resources: [resource], verbs: WRITE }]);
    }
    // A watch that was allowed once goes on.
    scene.endWatches();
  }

  nextText(): string {
    return (this.text = `text-${++this.#texts}`);
  }

  /** What is not as the page of a namespace says. */
  async differences(namespace: string): Promise<string[]> {
    const { scene } = this;
    const page = await scene.get(Page, "one", namespace);
    if (page === undefined) return [];
    if (page.metadata.deletionTimestamp !== undefined) return [`the page of ${namespace} is not gone`];
    const secrets = await Promise.all(INPUTS.map((name) => scene.get(Secret, `one-${name}`, namespace)));
    const text = Buffer.from(page.spec.text).toString("base64");
    return secrets.every((each) => each?.data?.["text"] === text) ? [] : [`the objects in ${namespace} are old`];
  }

  /** Looks for what was deleted of a page that lives, and for what is left of one that is gone. */
  async check(after: string): Promise<void> {
    const { scene } = this;
    for (const namespace of this.namespaces)
      for (const name of INPUTS) {
        const page = await scene.get(Page, "one", namespace);
        const isLiving = page !== undefined && page.metadata.deletionTimestamp === undefined;
        const secret = await scene.get(Secret, `one-${name}`, namespace);
        const key = `${namespace}/one-${name}`;
        const before = this.#seen.get(key);
        if (isLiving && before !== undefined && secret?.metadata.uid !== before)
          scene.problems.push(`${key} was deleted after "${after}"`);
        if (page === undefined && secret !== undefined) scene.problems.push(`${key} is left after "${after}"`);
        this.#seen.set(key, isLiving ? secret?.metadata.uid : undefined);
      }
  }
}

const ref = (namespace: string) => ({ name: "one", namespace });
const COMMANDS = {
  "watch both namespaces": ({ scene, namespaces }: World) => {
    const changed = scene.operator?.operator.controller(scene.id).setNamespaces(namespaces);
    // It may wait for the namespace that cannot be read.
    void changed?.catch(() => {});
  },
  "create the pages": async ({ scene, namespaces, text }: World) => {
    for (const namespace of namespaces)
      await attempt(() => scene.client.create(Page, { metadata: ref(namespace), spec: { text } }));
  },
  "edit the pages": async (world: World) => {
    const text = world.nextText();
    for (const namespace of world.namespaces)
      await attempt(() => world.scene.client.mergePatch(Page, ref(namespace), { spec: { text } }));
  },
  "delete the other page": ({ scene, other }: World) => attempt(() => scene.client.delete(Page, ref(other))),
  "the other namespace cannot be read": (world: World) => world.hide(),
  "the other namespace can be read": (world: World) => world.show(),
  "stop the operator": ({ scene }: World) => scene.stop(),
  "start the operator": (world: World) => world.launch(),
} as const;
type Command = keyof typeof COMMANDS;

async function play(scene: Scene, one: Case): Promise<void> {
  const world = new World(scene, one);
  await world.open();
  for (const command of one.commands) {
    await COMMANDS[command](world);
    if (scene.operator !== undefined)
      await scene.until(`served after "${command}"`, () => world.differences(world.readable));
    await scene.quiet();
    await world.check(command);
    if (scene.problems.length > 0) return world.show();
  }
  await world.show();
  if (scene.operator === undefined) await world.launch();
  for (const namespace of world.namespaces) await scene.until("served in the end", () => world.differences(namespace));
  await world.check("the end");
  for (const namespace of world.namespaces) await attempt(() => scene.client.delete(Page, ref(namespace)));
  for (const namespace of world.namespaces) await scene.until("cleaned up", () => world.differences(namespace));
  await world.check("the deletion");
}

const HIDE = "the other namespace cannot be read";
const SHOW = "the other namespace can be read";
const RESTARTED_BLIND = [
  "start the operator",
  "create the pages",
  "stop the operator",
  HIDE,
  "start the operator",
] as const;
const scenarios: Scenario<Case>[] = [];
function add(
  title: string,
  kinds: readonly Case["unreadable"][],
  commands: readonly Command[],
  rest: object = {},
): void {
  for (const by of ["faults", "rights"] as const)
    for (const unreadable of kinds) {
      const one = { unreadable, by, ...rest, commands };
      scenarios.push({ seed: scenarios.length + 1, title: `${title} (${unreadable}, by ${by})`, case: one });
    }
}
add(
  "does not block other namespaces at startup",
  ["everything", "Page", "Secret", "ConfigMap"],
  [...([HIDE, "start the operator", "create the pages", "edit the pages"] as const)],
);
add(
  "does not block other namespaces at runtime",
  ["everything", "Page", "Secret", "ConfigMap"],
  [...(["start the operator", "create the pages", HIDE, "edit the pages", SHOW, "edit the pages"] as const)],
);
add(
  "is not treated as empty after a restart",
  ["everything", "Secret", "ConfigMap"],
  [...([...RESTARTED_BLIND, "edit the pages", SHOW] as const)],
);
add(
  "keeps the finalizer of a deleted primary until its objects can be read",
  ["Secret"],
  [...([...RESTARTED_BLIND, "delete the other page", SHOW] as const)],
);
add(
  "does not block the operator if the kind of an event source is not served",
  ["everything"],
  ["start the operator", "create the pages", "edit the pages"],
  { hasMissingKind: true },
);
add(
  "does not block other namespaces when it is added",
  ["everything", "Secret"],
  [HIDE, "start the operator", "watch both namespaces", "create the pages"],
  { startsElsewhere: true },
);

const cases: fc.Arbitrary<Case> = fc
  .record({
    unreadable: fc.constantFrom("everything", "Page", "Secret", "ConfigMap"),
    by: fc.constantFrom("faults", "rights"),
    commands: fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Command[])), { minLength: 3, maxLength: 8 }),
  })
  .map(
    ({ commands, ...rest }) => ({ ...rest, commands: ["start the operator", "create the pages", ...commands] }) as Case,
  );

declareLaw<Case>({
  name: "namespaces",
  title: "unreadable namespace",
  open: scenesOf(),
  scenarios,
  play,
  needsFaults: ({ by }) => by === "faults",
  // A watch that fails is tried again after a pause that grows.
  ...(isRealApiServer && { patienceMs: 40_000 }),
  explored: {
    title: "blocks no other namespace and is never treated as empty for random failures and restarts",
    cases: isBroken("namespaces") ? undefined : cases,
  },
});
