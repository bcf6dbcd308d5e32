// Traces of OpenTelemetry, as an exporter in memory gets them.
import { trace } from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { waitFor } from "#apiserver/wait-for.js";
import { loadTracing } from "#runtime/operate/tracing.js";
import { startTestApiServer } from "../../../support/api/api-server.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  pageCrd,
  setText,
  startPageServer,
  type Page,
} from "../page-operator.js";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

const parentOf = ({ parentSpanContext }: ReadableSpan) => parentSpanContext?.spanId;
const idOf = (span: ReadableSpan) => span.spanContext().spanId;

suite("OpenTelemetry tracing", (test) => {
  test("is not loaded without a registered provider", async () => {
    assert.is(await loadTracing(), undefined);
  });

  test("creates a span for each reconcile, with child spans for its dependents and their requests", async () => {
    trace.setGlobalTracerProvider(provider);
    await using server = await startTestApiServer({ crds: [pageCrd] });
    const dependents = [configMapOf("text"), configMapOf("more", { dependsOn: ["text"] })];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    exporter.reset();
    await createPage(page);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    await page.quiet();
    const spans = exporter.getFinishedSpans();
    const reconciles = spans.filter(({ name }) => name === "reconcile page");
    assert.is(reconciles.length, page.events.length);
    const [first] = reconciles as [ReadableSpan];
    assert.is(parentOf(first), undefined);
    assert.is(first.attributes["gen_operator.primary"], "default/one");
    assert.is(first.attributes["gen_operator.attempt"], 0);
    assert.equal(first.attributes["gen_operator.reasons"], ["primary added"]);
    assert.ok(Number(first.attributes["gen_operator.queue_wait_ms"]) >= 0);
    const children = spans.filter((span) => parentOf(span) === idOf(first));
    const steps = children.filter(({ name }) => name.startsWith("dependent"));
    assert.equal(
      steps.map(({ name, attributes }) => [name, attributes["gen_operator.outcome"]]),
      [
        ["dependent text", "created"],
        ["dependent more", "created"],
      ],
    );
    for (const step of steps) {
      // Of what is created, everything is new.
      assert.is(step.attributes["gen_operator.changed_paths"], undefined);
      const requests = spans.filter((span) => parentOf(span) === idOf(step));
      assert.equal(
        requests.map(({ name, attributes }) => [name, attributes["http.response.status_code"]]),
        [["PATCH", 201]],
      );
      assert.ok(requests.every((span) => span.spanContext().traceId === first.spanContext().traceId));
    }
    const status = children.filter(({ name }) => name === "PATCH");
    assert.ok(status.length >= 1, "what the reconciler wants written is its own child");
    const own = spans.filter((span) => parentOf(span) === undefined && span.name === "POST");
    assert.is(own.length, 1, "what the program itself asks for belongs to no reconcile");
  });

  test("records at most 20 changed paths of a dependent, cut to 100 characters", async () => {
    trace.setGlobalTracerProvider(provider);
    await using server = await startPageServer();
    const [long, many] = ["x".repeat(120), Array.from({ length: 30 }, (_, at) => `k${at}`)];
    const text = configMapOf("text");
    const more = configMapOf("more", {
      desired: ({ primary: { metadata, spec } }) => ({
        metadata: { name: `${metadata.name}-more` },
        data: Object.fromEntries([long, ...many].map((key) => [key, spec.text])),
      }),
    });
    const bulk = configMapOf("bulk", {
      bulk: {},
      desired: ({ primary: { metadata, spec } }: { primary: Page }) => {
        const itemOf = (key: string) => ({ metadata: { name: `${metadata.name}-${key}` }, data: { [key]: spec.text } });
        return { a: itemOf("a"), b: itemOf("b") };
      },
    });
    await using page = createPageOperator(server, { dependents: [text, more, bulk] });
    await page.operator.start();
    await createPage(page);
    await waitFor("the page is reconciled", () => page.events.length > 0);
    await page.quiet();
    exporter.reset();
    await setText(page, "second");
    const pathsOf = (dependent: string) => {
      const spans = exporter.getFinishedSpans().filter(({ name }) => name === `dependent ${dependent}`);
      return spans.flatMap(({ attributes }) => (attributes["gen_operator.changed_paths"] ?? []) as string[]);
    };
    await waitFor("each dependent is changed", () =>
      ["text", "bulk", "more"].every((dependent) => pathsOf(dependent).length > 0),
    );
    await page.quiet();
    assert.equal(pathsOf("text"), ["data.text"]);
    assert.equal(pathsOf("bulk").sort(), ["data.a", "data.b"]);
    assert.is(pathsOf("more").length, 20);
    assert.is(pathsOf("more")[0], `data.${"x".repeat(94)}…`);
  });

  test("records the attempt and the error of a failed reconcile", async () => {
    trace.setGlobalTracerProvider(provider);
    await using server = await startPageServer();
    let attempts = 0;
    const reconcile = () => {
      if (++attempts < 2) throw new Error("out of order");
    };
    const retry = { initialIntervalMs: 1, maxRetries: 3 };
    await using page = createPageOperator(server, { dependents: [], reconciler: { reconcile }, retry });
    await page.operator.start();
    exporter.reset();
    await createPage(page);
    await waitFor("it is tried again", () => attempts === 2);
    await page.quiet();
    const reconciles = exporter.getFinishedSpans().filter(({ name }) => name === "reconcile page");
    assert.equal(
      reconciles.map(({ attributes, status }) => [attributes["gen_operator.attempt"], status.message]),
      [
        [0, "out of order"],
        [1, undefined],
      ],
    );
    assert.is(reconciles[0]?.events[0]?.name, "exception");
  });
});
