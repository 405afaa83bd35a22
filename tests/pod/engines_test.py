"""engines_test.py PROGRAM: what `sluice run --jobset` writes, read by the models of JobSet's own API, which refuse a
field that is not there and a value of another type. Status 77: the models are not installed (scripts/setup)."""

import subprocess
import sys
import unittest

try:
    import yaml
    from kubeflow_trainer_api.models import (IoK8sApiCoreV1PodSpec, JobsetV1alpha2JobSetSpec)
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

PROGRAM = sys.argv.pop(1)


def manifest(*flags):
    return yaml.safe_load(subprocess.run([PROGRAM, "run", "--jobset", *flags], check=True, capture_output=True, text=True).stdout)


class JobSet(unittest.TestCase):
    def check(self, model, part):
        """The model takes the part and has nothing less of it, so no field was unknown to it."""
        self.assertEqual(model.from_dict(part).to_dict(), part)

    def test_the_models_know_every_field(self):
        for tpu, hosts, chips, label, topology in [
                ("v5litepod-16", 4, 4, "tpu-v5-lite-podslice", "4x4"), ("v3-32", 4, 4, "tpu-v3-slice", "4x4"),
                ("v3-8", 1, 4, "tpu-v3-device", "2x2"), ("v4-32", 4, 4, "tpu-v4-podslice", "2x2x4"),
                ("v6e-16", 4, 4, "tpu-v6e-slice", "4x4"), ("v5p-32", 4, 4, "tpu-v5p-slice", "2x2x4"),
                ("tpu7x-32", 4, 4, "tpu7x", "2x2x4")]:
            with self.subTest(tpu):
                whole = manifest("--tpu-type", tpu, "--image", "me/train:1", "--name", "train", "--max-restarts", "3",
                                 "--queue", "team", "--priority", "high", "--chdir", "/data", "--env", "A=b: $(c) #d", "--setup", "echo 'a'\nmake",
                                 "--", "sluice", "train", "--lr", "0.1", "yes", "- no", "é")
                self.assertEqual((whole["apiVersion"], whole["kind"]), ("jobset.x-k8s.io/v1alpha2", "JobSet"))
                self.check(JobsetV1alpha2JobSetSpec, whole["spec"])
                self.assertEqual(whole["metadata"]["labels"], {"kueue.x-k8s.io/queue-name": "team",
                                                               "kueue.x-k8s.io/priority-class": "high"})
                self.assertEqual(whole["spec"]["failurePolicy"]["maxRestarts"], 3)
                job = whole["spec"]["replicatedJobs"][0]["template"]["spec"]
                self.assertEqual((job["parallelism"], job["completions"], job["backoffLimit"]), (hosts, hosts, 0))
                pod = job["template"]["spec"]
                self.check(IoK8sApiCoreV1PodSpec, pod)
                self.assertEqual(pod["nodeSelector"], {"cloud.google.com/gke-tpu-accelerator": label,
                                                       "cloud.google.com/gke-tpu-topology": topology})
                container = pod["containers"][0]
                self.assertEqual(container["resources"]["limits"], {"google.com/tpu": chips})
                secret = {"name": "train-run-key", "key": "key", "optional": True}
                self.assertEqual(container["env"], [{"name": "SLUICE_RUN_KEY", "valueFrom": {"secretKeyRef": secret}},
                                                    {"name": "A", "value": "b: $$(c) #d"}])
                self.assertEqual(container["command"],
                                 ["sh", "-c", "{\necho 'a'\nmake\n} || exit\nexec \"$$@\"", "sh", "sluice", "train", "--lr", "0.1", "yes",
                                  "- no", "é"])

    def test_several_slices(self):
        whole = manifest("--tpu-type", "2*v5p-32", "--image", "me/train:1", "--name", "train", "--", "sluice", "train")
        self.check(JobsetV1alpha2JobSetSpec, whole["spec"])
        jobs = whole["spec"]["replicatedJobs"]
        self.assertEqual([(job["name"], job["replicas"]) for job in jobs], [("slice", 2)])
        job = jobs[0]["template"]["spec"]
        self.assertEqual((job["parallelism"], job["completions"]), (4, 4))
        pod = job["template"]["spec"]
        self.check(IoK8sApiCoreV1PodSpec, pod)
        place = {"fieldRef": {"fieldPath": "metadata.annotations['jobset.sigs.k8s.io/job-index']"}}
        self.assertEqual(pod["containers"][0]["env"][1:], [
            {"name": "MEGASCALE_NUM_SLICES", "value": "2"}, {"name": "MEGASCALE_SLICE_ID", "valueFrom": place},
            {"name": "MEGASCALE_COORDINATOR_ADDRESS", "value": "train-slice-0-0.train"}])


if __name__ == "__main__":
    unittest.main()
