// Absence is confirmed: a resource outside Kubernetes that a read misses is there, until a later read says that it is not.
//
// The service shows what was done only after a while, as every cloud does, and now and then it shows nothing. There is exactly one resource for
// each page or item all the same, and none after the page is deleted.
import fc from "../../../../support/fast-check.js";
import { attempt } from "../model/world.js";
import { EventualService } from "./eventual-service.js";
import { itemsOf, ownerOf, resourceOf, type Found } from "./external-pages.js";
import { Page, textController } from "./kinds.js";
import { declareLaw, isBroken, type Scenario } from "./law.js";
import { scenesOf, type Scene } from "./scene.js";

/** An edit may meet a fetch that began before it. */
const MOST_UPDATES = 2;

interface Case extends Found {
  readonly commands: readonly Command[];
}

interface World {
  readonly scene: Scene;
  readonly service: EventualService;
  text: number;
}

const refOf = ({ namespace }: Scene) => ({ name: "one", namespace });
const edit = ({ scene }: World, spec: Partial<Page["spec"]>) =>
  attempt(() => scene.client.mergePatch(Page, refOf(scene), { spec }));

async function deletePage({ scene }: World): Promise<void> {
  if ((await scene.get(Page, "one")) !== undefined) await attempt(() => scene.client.delete(Page, refOf(scene)));
}

const COMMANDS = {
  "create page": ({ scene }: World) =>
    attempt(() => scene.client.create(Page, { metadata: refOf(scene), spec: { text: "first", more: "ab" } })),
  "edit page": async (world: World) => {
    const updates = () => world.service.changes.filter((change) => change.startsWith("update")).length;
    const before = updates();
    const page = await world.scene.get(Page, "one");
    await edit(world, { text: `text-${++world.text}` });
    await world.service.untilRead(8);
    const most = MOST_UPDATES * (page === undefined ? 0 : itemsOf(page).length);
    const made = updates() - before;
    if (made > most) world.scene.problems.push(`one edit caused ${made} updates`);
  },
  "add an item": (world: World) => edit(world, { more: "abc" }),
  "take an item away": (world: World) => edit(world, { more: "a" }),
  "delete page": deletePage,
  "reads are late from now on": ({ service }: World) => service.freeze(),
  "reads catch up": async ({ service }: World) => {
    service.thaw();
    await service.untilRead();
  },
  "a read finds nothing": async ({ service }: World) => {
    await service.untilRead();
    await service.miss();
    await service.untilRead();
  },
  "restart the operator": ({ scene }: World) => scene.start(),
} as const;
type Command = keyof typeof COMMANDS;

async function play(scene: Scene, one: Case): Promise<void> {
  const service = new EventualService();
  const world = { scene, service, text: 0 };
  await scene.start(textController(scene, { dependents: [resourceOf(service, one)] }));
  const check = (after: string) => {
    for (const key of service.duplicates) scene.problems.push(`${key} was created more than once, after "${after}"`);
  };
  for (const command of one.commands) {
    await COMMANDS[command](world);
    // Nothing is at rest while a resource is created over and over.
    await scene.quiet(() => service.duplicates.length > 0);
    check(command);
    if (scene.problems.length > 0) return;
  }
  service.thaw();
  const differences = async () => {
    const page = await scene.get(Page, "one");
    const items = page === undefined ? [] : one.isBulk ? itemsOf(page) : [""];
    const isLeaving = page?.metadata.deletionTimestamp === undefined ? [] : ["the page is not gone"];
    const wanted = items.map((item) => `${ownerOf(page!)}[${item}] ${page!.spec.text}`).sort();
    const found = service.resources.map(({ owner, item, value }) => `${owner}[${item}] ${value}`).sort();
    return found.join() === wanted.join() ? isLeaving : [`there are ${found.join()}, and not ${wanted.join()}`];
  };
  await scene.until("as the page says", differences);
  await service.untilRead();
  check("a while");
  await deletePage(world);
  await scene.until("the page is gone", async () => (await scene.get(Page, "one")) === undefined);
  await scene.quiet();
  if (service.resources.length > 0) scene.problems.push(`${service.resources.length} resources are left`);
}

const FOUND = {
  single: { isBulk: false, state: "none" },
  kept: { isBulk: false, state: "configMap" },
  "kept in the status": { isBulk: false, state: "status" },
  "items kept": { isBulk: true, state: "configMap" },
} as const satisfies { readonly [how: string]: Found };
const LATE = "reads are late from now on";

const scenarios: Scenario<Case>[] = [];
function add(title: string, how: readonly (keyof typeof FOUND)[], commands: readonly Command[]): void {
  for (const found of how)
    scenarios.push({
      seed: scenarios.length + 1,
      title: `exists once ${title} (${found})`,
      case: { ...FOUND[found], commands },
    });
}
add("although reads are stale", ["single", "kept", "kept in the status", "items kept"], [LATE, "create page"]);
add("although a read returns nothing", ["single", "kept", "items kept"], ["create page", "a read finds nothing"]);
add("although two reads return nothing", ["single"], ["create page", "a read finds nothing", "a read finds nothing"]);
add(
  "although an update is visible late",
  ["single", "items kept"],
  ["create page", LATE, "edit page", "reads catch up"],
);
add(
  "after a restart before reads return it",
  ["single", "kept", "items kept"],
  [LATE, "create page", "restart the operator", "reads catch up"],
);
add(
  "and is deleted with its primary before reads return it",
  ["single", "kept", "items kept"],
  [LATE, "create page", "delete page"],
);
add(
  "and is deleted with its primary after a read returned nothing",
  ["single", "kept"],
  ["create page", "a read finds nothing", "delete page"],
);
add(
  "and is deleted with its item before reads return it",
  ["items kept"],
  ["create page", LATE, "add an item", "take an item away", "reads catch up"],
);

const cases: fc.Arbitrary<Case> = fc
  .record({
    found: fc.constantFrom(...Object.values(FOUND)),
    commands: fc.array(fc.constantFrom(...(Object.keys(COMMANDS) as Command[])), { minLength: 2, maxLength: 7 }),
  })
  .map(({ found, commands }) => ({ ...found, commands: ["create page", ...commands] }));

declareLaw<Case>({
  name: "external",
  title: "external resource with eventually consistent reads",
  open: scenesOf(),
  scenarios,
  play,
  explored: {
    title: "exists once for each primary or item, and not after its deletion",
    cases: isBroken("external") ? undefined : cases,
  },
});
