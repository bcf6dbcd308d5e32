// Functions of the user that are not awaited and return a promise all the same, which is rejected when nobody looks: Node would end the
// process. Loggers and keys that are none belong here, too: they fail where the user's code is not on the stack any more.
import { waitFor } from "#apiserver/wait-for.js";
import type { EventSource } from "#runtime/sources/event-source.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { inboundSource, timerSource } from "#runtime/sources/trigger-sources.js";
import { perPrimaryPollingSource } from "#runtime/sources/polling-sources.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  createPage,
  createPageOperator,
  setText,
  startPageServer,
  untilText,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

const rejects = (() => Promise.reject(new Error("too late"))) as never;
const NAMESPACES = { namespaces: ["default"] };

/** Sees that an operator goes on, and counts the promises that were rejected meanwhile with nobody looking. */
async function unhandledWith(
  options: PageOperatorOptions,
  more: (page: PageOperator) => Promise<void> | void = () => {},
): Promise<number> {
  let unhandled = 0;
  const count = () => void unhandled++;
  process.on("unhandledRejection", count);
  try {
    await using server = await startPageServer();
    await using page = createPageOperator(server, options);
    await page.operator.client.create(ConfigMap, { metadata: { name: "before", namespace: "default" } });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await setText(page, "second");
    await untilText(page, "second");
    await more(page);
    // Node tells of it once the turn in which it was rejected is over.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.removeListener("unhandledRejection", count);
  }
  return unhandled;
}

const configs = (rest: object) => informerSource({ name: "configs", resource: ConfigMap, ...rest });
const health = ({ operator }: PageOperator, source: string) => operator.controller("page").health()[source]!;

suite("rejected promises of user functions", (test) => {
  test("from observers are logged", async () => {
    const unhandled = await unhandledWith({ operator: { observer: rejects, onRequest: rejects } }, (page) => {
      for (const what of ["reconciles", "requests"])
        assert.ok(page.logs.includes(`error the observer of ${what} failed: too late`), page.logs.join("\n"));
    });
    assert.is(unhandled, 0);
  });

  for (const [what, source] of [
    ["the mapper", { mapper: rejects }],
    ["primaryToSecondary", { primaryToSecondary: rejects }],
    ["the generic filter", { mapper: () => ["default/one"], filters: { generic: rejects } }],
    ['the index "i"', { indexes: { i: rejects } }],
  ] as const)
    test(`from ${what} of an event source mark it as unhealthy`, async () => {
      const options = { ...NAMESPACES, eventSources: () => [configs(source)] };
      const unhandled = await unhandledWith(options, async (page) => {
        const { status, reason } = health(page, "configs");
        assert.is(status, "unhealthy");
        assert.match(reason!, what);
        assert.match(reason!, "it returned a promise; nothing waits for it here, so it has to be synchronous");
      });
      assert.is(unhandled, 0);
    });

  test("from filters and indexes of primaries are reported, and events pass the filter", async () => {
    const options = { filters: { generic: rejects }, indexes: { i: rejects } };
    const unhandled = await unhandledWith(options, (page) => {
      assert.match(page.logs.join("\n"), "error a filter failed, and the event passes: it returned a promise");
      assert.match(health(page, "primary").reason!, 'the index "i" for default/one failed: it returned a promise');
    });
    assert.is(unhandled, 0);
  });

  test("from retry and rateLimit are logged, and the primary is retried", async () => {
    let fails = true;
    const reconciler = {
      reconcile: () => {
        if (fails) throw new Error("not yet");
      },
    };
    const retry = { next: rejects, isLastAttempt: rejects };
    const rateLimit = () => ({ take: rejects });
    const unhandled = await unhandledWith({ reconciler, retry, rateLimit }, async (page) => {
      await waitFor("it failed", () => page.events.some(({ error }) => error !== undefined));
      fails = false;
      await waitFor("it succeeds", () => page.events.at(-1)?.error === undefined);
      const logs = page.logs.join("\n");
      const reason = "it returned a promise; nothing waits for it here, so it has to be synchronous";
      assert.match(logs, `error custom retry of the controller failed, using the default: ${reason}`);
      assert.match(logs, `error custom rate limiter failed, reconciling without a limit: ${reason}`);
    });
    assert.is(unhandled, 0);
  });

  test("from onPrimaryChange() of an event source mark it as unhealthy", async () => {
    const source: EventSource = {
      name: "own",
      health: { status: "healthy" },
      start: async () => {},
      stop: async () => {},
      secondariesOf: () => [],
      onPrimaryChange: rejects,
      release: rejects,
    };
    const unhandled = await unhandledWith({ eventSources: () => [source] }, async (page) => {
      const { reason } = await waitFor("it is told", () =>
        health(page, "own").reason ? health(page, "own") : undefined,
      );
      assert.match(reason!, "onPrimaryChange failed: too late");
    });
    assert.is(unhandled, 0);
  });

  test("from eventSources() fail the start with the name of the controller", async () => {
    await using server = await startPageServer();
    const throws = () => {
      throw new Error("no sources today");
    };
    for (const [eventSources, reason] of [
      [rejects, "it returned a promise; nothing waits for it here, so it has to be synchronous"],
      [() => 5 as never, "eventSources() must return an array, but returned number"],
      [
        () => [timerSource({ name: "t" }), undefined as never],
        "eventSources()[1] must be an event source, but is undefined",
      ],
      [throws, "no sources today"],
    ] as const) {
      await using page = createPageOperator(server, { eventSources });
      const failure = await failureOf(() => page.operator.start());
      assert.is(failure, `cannot create the event sources of controller "page": ${reason}`);
    }
  });

  test("from intervalOf(), as well as invalid numbers, mark the source as unhealthy", async () => {
    const polled = (intervalOf: () => number) =>
      perPrimaryPollingSource({ name: "visits", idOf: () => "", intervalMs: 60_000, intervalOf, fetch: () => [] });
    for (const intervalOf of [rejects, () => Number.NaN, () => -5]) {
      const unhandled = await unhandledWith({ eventSources: () => [polled(intervalOf)] }, (page) =>
        assert.match(health(page, "visits").reason!, "intervalOf failed: "),
      );
      assert.is(unhandled, 0);
    }
  });
});

suite("invalid results of user functions", (test) => {
  for (const keys of [[undefined], [5], [{ name: "one" }], 5, null] as const)
    test(`from a mapper (${JSON.stringify(keys)}) do not end the watch`, async () => {
      const source = configs({ mapper: () => keys });
      const unhandled = await unhandledWith({ ...NAMESPACES, eventSources: () => [source] }, async (page) => {
        await page.operator.client.create(ConfigMap, { metadata: { name: "after", namespace: "default" } });
        await waitFor("the source sees it", () => source.get("default/after"));
        assert.match(health(page, "configs").reason!, /the mapper failed: it returned \w+/);
        assert.equal(health(page, "primary"), { status: "healthy" });
      });
      assert.is(unhandled, 0);
    });

  test("from primaryToSecondary() fail no reconcile", async () => {
    const source = configs({ primaryToSecondary: () => [undefined] });
    const unhandled = await unhandledWith({ ...NAMESPACES, eventSources: () => [source] }, (page) => {
      assert.equal(failuresOf(page.events), []);
      assert.match(health(page, "configs").reason!, "primaryToSecondary failed: it returned undefined among its keys");
    });
    assert.is(unhandled, 0);
  });

  test("as keys for notify() are rejected", async () => {
    const source = inboundSource({ name: "pings" });
    const unhandled = await unhandledWith({ ...NAMESPACES, eventSources: () => [source] }, () =>
      assert.throws(
        () => source.notify(undefined as never),
        'event source "pings" names a primary by undefined; a key is "namespace/name" or "name"',
      ),
    );
    assert.is(unhandled, 0);
  });

  test("from a logger that throws or rejects are ignored with one process warning each", async () => {
    const warnings: string[] = [];
    const note = ({ message }: Error) => void warnings.push(message);
    process.on("warning", note);
    const throws = () => {
      throw new Error("disk full");
    };
    for (const line of [throws, rejects]) {
      let fails = true;
      const reconciler = {
        reconcile: () => {
          if (fails) throw new Error("not yet");
        },
      };
      const logger = { debug: line, info: line, warn: line, error: line };
      const unhandled = await unhandledWith({ reconciler, operator: { logger } }, async (page) => {
        await waitFor("it is tried again", () => page.events.length > 2);
        fails = false;
        await waitFor("it succeeds", () => page.events.at(-1)!.error === undefined);
      });
      assert.is(unhandled, 0);
    }
    process.removeListener("warning", note);
    assert.equal(warnings, [
      "logger failed, log lines are lost: disk full",
      "logger failed, log lines are lost: too late",
    ]);
  });

  test("such as errors without a readable message are retried", async () => {
    const unreadable = Object.defineProperty(new Error(), "message", {
      get: () => {
        throw new Error("no message");
      },
    });
    const strange = Object.assign(new Error("x"), { message: { code: 7 } });
    for (const thrown of [unreadable, strange]) {
      let fails = true;
      const reconciler = {
        reconcile: () => {
          if (fails) throw thrown;
        },
      };
      const unhandled = await unhandledWith({ reconciler }, async (page) => {
        await waitFor("it is tried again", () => page.events.length > 2);
        fails = false;
        await waitFor("it succeeds", () => page.events.at(-1)!.error === undefined);
      });
      assert.is(unhandled, 0);
    }
  });
});
