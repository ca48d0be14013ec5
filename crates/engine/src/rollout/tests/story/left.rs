//! A story as another controller of the same API has left it.

use serde_json::{Value, json};

use super::{Story, merge};

impl Story {
    /// A ReplicaSet, its pods and all that names them have another hash.
    pub fn rehash(&mut self, at: usize, hash: &str) {
        let known = self.hash(at);
        let renamed = |value: &Value| -> Value {
            serde_json::from_str(&value.to_string().replace(&known, hash)).unwrap()
        };
        self.rollout["status"] = renamed(&self.rollout["status"]);
        for objects in [&mut self.sets, &mut self.services, &mut self.pods, &mut self.ingresses] {
            objects.iter_mut().for_each(|object| *object = renamed(object));
        }
        self.touch_rollout();
    }

    /// The hash that releases up to 1.8 gave to the template as it is now.
    pub fn legacy_hash(&self) -> String {
        self.world().rollout.legacy_hash.to_string()
    }

    /// The API server has filled in what the template of a ReplicaSet leaves out.
    pub fn default_template(&mut self, at: usize) {
        let template = &mut self.sets[at]["spec"]["template"];
        let of_pod = json!({ "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler",
            "securityContext": {} });
        merge(&mut template["spec"], &of_pod);
        let of_container = json!({ "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File" });
        merge(&mut template["spec"]["containers"][0], &of_container);
        template["metadata"]["creationTimestamp"] = Value::Null;
    }

    /// What tools and that controller have noted on the Rollout and its ReplicaSets.
    pub fn note_all(&mut self) {
        let applied = json!({ "kubectl.kubernetes.io/last-applied-configuration": "{}\n",
            "notified.notifications.argoproj.io": "{\"1:on-completed\":1}" });
        merge(&mut self.rollout["metadata"]["annotations"], &applied);
        let copied = json!({ "team": "shop" });
        merge(&mut self.rollout["metadata"]["annotations"], &copied);
        for set in &mut self.sets {
            merge(&mut set["metadata"]["annotations"], &copied);
            set["metadata"]["creationTimestamp"] = json!("2023-11-14T22:13:20Z");
        }
        self.touch_rollout();
    }
}
