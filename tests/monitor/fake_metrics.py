"""A service that stands for libtpu's RuntimeMetricService: gRPC by grpcio, its messages by protobuf's own library."""

import threading
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

METHOD = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric"
USED = "tpu.runtime.hbm.memory.usage.bytes"
TOTAL = "tpu.runtime.hbm.memory.total.bytes"
DUTY = "tpu.runtime.tensorcore.dutycycle.percent"

# message -> its fields: (name, number, type), "*" before a type: repeated.
MESSAGES = {
    "MetricRequest": [("metric_name", 1, "string"), ("skip_node_aggregation", 2, "bool")],
    "AttrValue": [("string_attr", 1, "string"), ("int_attr", 3, "int64")],
    "Attribute": [("key", 1, "string"), ("value", 2, "AttrValue")],
    "Gauge": [("as_double", 1, "double"), ("as_int", 2, "int64")],
    "Metric": [("attribute", 1, "Attribute"), ("gauge", 3, "Gauge")],
    "TPUMetric": [("name", 1, "string"), ("description", 2, "string"), ("metrics", 3, "*Metric")],
    "MetricResponse": [("metric", 1, "TPUMetric")],
}


def message_classes():
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="fake_metrics.proto", package="fake", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            if kind in MESSAGES:
                message.field.add(name=field, number=number, label=label, type=kinds.TYPE_MESSAGE, type_name=f".fake.{kind}")
            else:
                message.field.add(name=field, number=number, label=label, type=getattr(kinds, f"TYPE_{kind.upper()}"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"fake.{name}")) for name in MESSAGES}


CLASSES = message_classes()


def response(name, values):
    """The answer's bytes. `values`: {device: number}; a whole number goes as an int, as libtpu sends bytes."""
    answer = CLASSES["MetricResponse"]()
    answer.metric.name = name
    for device, value in values.items():
        metric = answer.metric.metrics.add()
        metric.attribute.key = "device-id"
        metric.attribute.value.int_attr = device
        if isinstance(value, int):
            metric.gauge.as_int = value
        else:
            metric.gauge.as_double = value
    return answer.SerializeToString()


class FakeMetrics:
    """Serves {metric: {device: value}}; what it lacks is NOT_FOUND. `answer` may replace all answers by bytes, `wait` makes
    each take so many seconds, `fails` gives a gRPC status."""

    def __init__(self, values, answer=None, wait=0, fails=None):
        self.values, self.answer, self.wait, self.fails = values, answer, wait, fails
        self.asked = []
        self.ends = threading.Event()
        self.server = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
        self.server.add_generic_rpc_handlers((self,))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(self.get) if details.method == METHOD else None

    def get(self, request, context):
        name = CLASSES["MetricRequest"].FromString(request).metric_name
        self.asked.append(name)
        self.ends.wait(self.wait)
        if self.fails:
            context.abort(self.fails, "the chips are busy")
        if self.answer is not None:
            return self.answer
        if name not in self.values:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no metric {name}")
        return response(name, self.values[name])

    def close(self):
        self.ends.set()
        self.server.stop(0).wait()


if __name__ == "__main__":  # to look at `sluice top` by hand
    GIB = 2**30
    fake = FakeMetrics({USED: {0: 10 * GIB, 1: 11 * GIB}, TOTAL: {0: 32 * GIB, 1: 32 * GIB}, DUTY: {0: 93.5, 1: 91.0}})
    print(f"TPU_RUNTIME_METRICS_PORTS={fake.port}", flush=True)
    time.sleep(3600)
