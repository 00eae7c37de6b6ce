"""Plugins of mosquitto that are built in: their lines mean password_file and acl_file."""

import unittest

import scratch

from slotmq.config import mosquitto_conf
from slotmq.config.limits import Limits
from slotmq.config.settings import ConfError

PASSWORDS = "/usr/lib/mosquitto/mosquitto_password_file.so"
LOAD = f"plugin_load pw {PASSWORDS}\nplugin_opt_password_file /etc/users\n"


def password_file(text):
    return mosquitto_conf.load(scratch.write(text), Limits())[0].password_file


class Case(unittest.TestCase):
    def errors(self, text):
        """Of each error the line, the key and the rest."""
        path = scratch.write(text)
        with self.assertRaises(ConfError) as caught:
            mosquitto_conf.load(path, Limits())
        lines = str(caught.exception).replace(path + ":", "").split("\n")
        return [tuple(line.split(": ", 2)) for line in lines]

    def refused(self, text, line, key, *parts):
        ((found_line, found_key, message),) = self.errors(text)
        self.assertEqual((found_line, found_key), (str(line), key))
        for part in parts:
            self.assertIn(part, message)


class TestPlugins(Case):
    def test_for_all_listeners(self):
        option = "plugin_opt_password_file /etc/users"
        for key in ("plugin", "global_plugin", "auth_plugin"):
            self.assertEqual(password_file(f"{key} {PASSWORDS}\n{option}"), "/etc/users")
        self.assertEqual(
            password_file("plugin C:\\lib\\mosquitto_password_file.dll\nauth_opt_password_file u"),
            "u",
        )

    def test_loaded_and_used_by_each_listener(self):
        text = LOAD + "listener 1\nplugin_use pw\nlistener 2\nplugin_use pw"
        self.assertEqual(password_file(text), "/etc/users")

    def test_the_option_may_follow_plugin_use(self):
        text = f"plugin_load pw {PASSWORDS}\nlistener 1\nplugin_use pw\n"
        self.assertEqual(password_file(text + "plugin_opt_password_file u"), "u")

    def test_a_listener_that_does_not_use_it_is_not_left_out(self):
        key = "plugin_load"
        self.refused(LOAD + "listener 1\nplugin_use pw\nlistener 2", 1, key, "each listener")
        self.refused(LOAD + "port 1884\nlistener 1\nplugin_use pw", 1, key, "each listener")
        self.refused(LOAD + "listener 1", 1, key, "each listener")

    def test_with_per_listener_settings_it_is_for_those_that_use_it(self):
        text = "per_listener_settings true\n" + LOAD + "listener 1\nplugin_use pw\nlistener 2"
        found = mosquitto_conf.load(scratch.write(text), Limits())[0]
        options = [each[3]["password_file"] for each in found.listeners]
        self.assertEqual(options, ["/etc/users", None])
        self.refused(
            "per_listener_settings true\n" + LOAD + "listener 1", 2, "plugin_load", "each"
        )

    def test_users_are_never_left_out(self):
        self.refused(f"plugin {PASSWORDS}", 1, "plugin", "plugin_opt_password_file PATH")
        key = "plugin_opt_passwords"
        (_, (line, found, message)) = self.errors(f"plugin {PASSWORDS}\n{key} u")
        self.assertEqual((line, found), ("2", key))
        self.assertIn("plugin_opt_password_file", message)

    def test_one_file(self):
        option = "plugin_opt_password_file"
        text = f"password_file u\nplugin {PASSWORDS}\n{option} "
        self.assertEqual(password_file(text + "u"), "u")
        self.refused(text + "v", 3, option, "one password_file")

    def test_all_other_plugins(self):
        found = self.errors("plugin /lib/mosquitto_dynamic_security.so\nplugin_opt_config_file x")
        self.assertEqual(
            [each[:2] for each in found], [("1", "plugin"), ("2", "plugin_opt_config_file")]
        )
        for _, _, message in found:
            self.assertEqual(message.find("not served: "), 0)
        self.refused("plugin /lib/password_file.so", 1, "plugin", "mosquitto_password_file.so")

    def test_bad_lines(self):
        self.refused("plugin_opt_password_file u", 1, "plugin_opt_password_file", "a plugin above")
        self.refused("plugin", 1, "plugin", "a value")
        self.refused("plugin_load pw", 1, "plugin_load", "a name and a path")
        self.refused("listener 1\nplugin_use pw", 2, "plugin_use", "plugin_load above it")
        for name in ("", "pw x"):
            text = LOAD + f"listener 1\nplugin_use pw\nplugin_use {name}"
            self.refused(text, 5, "plugin_use", "plugin_load above it")
        found = self.errors(LOAD + "plugin_use pw\nlistener 1")
        self.assertEqual(found[1][:2], ("3", "plugin_use"))
