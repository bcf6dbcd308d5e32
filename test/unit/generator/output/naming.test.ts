import {
  NameAllocator,
  camelCase,
  kebabCase,
  nameResources,
  operatorNameOf,
  pascalCase,
} from "#generator/emit/names.js";
import type { ControllerModel, ResourceModel } from "#generator/model/project-model.js";
import { thingOf } from "../../../support/runtime/resource-models.js";
import { assert, suite } from "../../../support/suite.js";

suite("naming", (test) => {
  const cases = [
    { given: "WebPage", kebab: "web-page", camel: "webPage", pascal: "WebPage" },
    { given: "HTTPRoute", kebab: "http-route", camel: "httpRoute", pascal: "HTTPRoute" },
    {
      given: "KafkaMirrorMaker2",
      kebab: "kafka-mirror-maker2",
      camel: "kafkaMirrorMaker2",
      pascal: "KafkaMirrorMaker2",
    },
    { given: "postgresql", kebab: "postgresql", camel: "postgresql", pascal: "Postgresql" },
    { given: "foo-bar_baz", kebab: "foo-bar-baz", camel: "fooBarBaz", pascal: "FooBarBaz" },
    { given: "MFA", kebab: "mfa", camel: "mfa", pascal: "MFA" },
    { given: "CSIDriver", kebab: "csi-driver", camel: "csiDriver", pascal: "CSIDriver" },
  ];
  for (const { given, kebab, camel, pascal } of cases)
    test(`converts ${given} to ${kebab}, ${camel}, and ${pascal}`, () => {
      assert.equal([kebabCase(given), camelCase(given), pascalCase(given)], [kebab, camel, pascal]);
    });

  const operators = [
    { given: "web-page", want: "web-page" },
    { given: "@acme/Page_Operator", want: "page-operator" },
    { given: "my.operator", want: "my-operator" },
    { given: "2fa", want: "operator-2fa" },
    { given: "@acme/_", want: "operator" },
    { given: `${"long-".repeat(10)}name`, want: "long-long-long-long-long-long-long-long-long-long" },
  ];
  for (const { given, want } of operators)
    test(`derives operator ${want} from package ${given}`, () => assert.is(operatorNameOf(given), want));

  test("adds a hash of the path to a name that is taken or too long", () => {
    const names = new NameAllocator(["Taken"]);
    assert.is(names.allocate("Free", ["a"]), "Free");
    assert.match(names.allocate("Taken", ["b"]), /^Taken_[0-9a-f]{8}$/);
    const long = names.allocate("L".repeat(150), ["c"]);
    assert.is(long.length, 100);
    assert.is.not(names.allocate("L".repeat(150), ["d"]), long);
  });

  test("uses the kind as name, unless groups or versions share it", () => {
    const kinds = [
      thingOf({}, { kind: "Gateway", group: "networking.istio.io" }),
      thingOf({}, { kind: "Gateway", group: "gateway.networking.k8s.io" }),
      thingOf({}, { kind: "Thing", version: "v1", isStorage: false }),
      thingOf({}, { kind: "Thing", version: "v2", isStorage: true }),
      thingOf({}, { kind: "postgresql" }),
    ];
    assert.equal(
      [...nameResources({ resources: kinds }).values()].map(({ localName }) => localName),
      ["NetworkingIstioIoGateway", "GatewayNetworkingK8sIoGateway", "ThingV1", "Thing", "Postgresql"],
    );
  });

  test("keeps the kind as name of the primary if a dependent of another group has the same kind", () => {
    const own = thingOf({}, { kind: "Service", group: "serving.example.com", version: "v1" });
    const core = thingOf({}, { kind: "Service", group: "", version: "v1", isCustom: false });
    const old = thingOf({}, { kind: "Service", group: "serving.example.com", version: "v1beta1", isStorage: false });
    const namesWith = (resources: readonly ResourceModel[], ...primaries: readonly ResourceModel[]) => {
      const controllers = primaries.map((primary) => ({ primary, dependents: [] }) as unknown as ControllerModel);
      return [...nameResources({ resources, controllers }).values()].map(({ exportName }) => exportName);
    };
    assert.equal(namesWith([own], own), ["Service"]);
    assert.equal(namesWith([own, core], own), ["Service", "CoreService"]);
    assert.equal(namesWith([core, own], core), ["Service", "ServingExampleComService"]);
    assert.equal(namesWith([own, core, old], own), ["Service", "CoreService", "ServiceV1beta1"]);
    assert.equal(namesWith([own, core, old], old), ["ServiceV1", "CoreService", "Service"]);
    const both = ["ServingExampleComService", "CoreService"];
    assert.equal(namesWith([own, core], own, core), both, "two primaries");
    assert.equal(namesWith([own, core]), both, "no primary");
  });

  test("keeps the kind as name of the version that a controller uses as primary", () => {
    const old = thingOf({}, { kind: "Thing", version: "v1", isStorage: true });
    const other = thingOf({}, { kind: "Thing", version: "v1beta1", isStorage: false });
    const namesWith = (...primaries: readonly ResourceModel[]) => {
      const controllers = primaries.map((primary) => ({ primary, dependents: [] }) as unknown as ControllerModel);
      return [...nameResources({ resources: [old, other], controllers }).values()].map(({ exportName }) => exportName);
    };
    assert.equal(namesWith(), ["Thing", "ThingV1beta1"]);
    assert.equal(namesWith(old), ["Thing", "ThingV1beta1"]);
    assert.equal(namesWith(other), ["ThingV1", "Thing"]);
    assert.equal(namesWith(other, old), ["Thing", "ThingV1beta1"], "of two that are used, the one that is stored");
  });
});
