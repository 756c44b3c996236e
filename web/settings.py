"""Django settings of every process; values come from ``web.environment``."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from billing_agent.identity.kept import kept
from billing_agent.stores.pool import BOUNDED
from web import environment

BASE_DIR = environment.BASE_DIR
VAR_DIR = environment.var_dir()


def _kept_secret(name: str) -> str:
    """Return the secret kept under ``var/``, made at first use."""
    try:
        return kept(VAR_DIR / name, lambda: secrets.token_urlsafe(48))
    except OSError as error:
        raise ImproperlyConfigured(f"VAR_DIR cannot be used: {error}") from None


def _database(url: str) -> dict[str, Any]:
    """Translate a PostgreSQL URL (also one naming a socket folder) for Django."""
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError as error:
        raise ImproperlyConfigured(f"DATABASE_URL: {error}".strip()) from None
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", "postgres"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**BOUNDED, **parts},
    }


DEBUG = environment.flag("DEBUG")
SECRET_KEY = environment.text("SECRET_KEY") or _kept_secret("secret-key")
ALLOWED_HOSTS = environment.names("ALLOWED_HOSTS")
DATABASE_URL = environment.text("DATABASE_URL")
DATABASES = {"default": _database(DATABASE_URL)} if DATABASE_URL else {}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "channels",
    "django_htmx",
    "billing_agent",
    "orchestrator",
    "web",
]
MIDDLEWARE = [
    "web.security.SecurityHeaders",
    "django.middleware.security.SecurityMiddleware",
    "web.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
CSRF_FAILURE_VIEW = "web.errors.forged"
ROOT_URLCONF = "web.urls"
ASGI_APPLICATION = "web.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "web" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "web.log.OneLine",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        }
    },
    "filters": {"news": {"()": "web.log.News"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "a2a.server.events.event_queue_v2": {"filters": ["news"]},
        # It says at each try what the error says once.
        "psycopg.pool": {"level": "ERROR"},
    },
}
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "web" / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "web.static_files.HashedStorage"},
}
WHITENOISE_USE_FINDERS = True
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

WEB_URL = environment.text("WEB_URL").rstrip("/")
# TLS ends in front of this process: its own scheme says nothing about the browser's.
CSRF_TRUSTED_ORIGINS = [WEB_URL]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = WEB_URL.startswith("https://")
CSRF_COOKIE_HTTPONLY = True
PUBLIC_URL = environment.text("PUBLIC_URL").rstrip("/")
REPLICAS = environment.pairs("REPLICAS")
OIDC_ISSUER = environment.text("OIDC_ISSUER") or WEB_URL
OIDC_AUDIENCE = environment.text("OIDC_AUDIENCE")
OIDC_CLIENT_ID = environment.text("OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = environment.text("OIDC_CLIENT_SECRET") or _kept_secret(
    "client-orchestrator"
)
DEMO_SWITCHES = environment.flag("DEMO_SWITCHES")
CONTINUITY = environment.choice("CONTINUITY", "on", "off")
OUTPUT = environment.choice("OUTPUT", "per-run", "per-event")
SESSIONS = environment.choice("SESSIONS", "memory", "shared")
CANCEL = environment.choice("CANCEL", "bus", "none")
BILLING_MODEL = environment.text("BILLING_MODEL")
SCRIPTED_MODEL_LATENCY = environment.number("SCRIPTED_MODEL_LATENCY")
RUN_TIMEOUT = environment.number("RUN_TIMEOUT")
TURN_WAIT = environment.number("TURN_WAIT")
BLOCKING_WAIT = environment.number("BLOCKING_WAIT")
CONSUMPTION_WAIT = environment.number("CONSUMPTION_WAIT")
PARKED_TIMEOUT = environment.number("PARKED_TIMEOUT")
SWEEP_INTERVAL = environment.number("SWEEP_INTERVAL")
DRAIN_GRACE = environment.number("DRAIN_GRACE")
BODY_LIMIT = int(environment.number("BODY_LIMIT"))
STREAM_LIMIT = int(environment.number("STREAM_LIMIT"))
RATE_PER_SECOND = environment.number("RATE_PER_SECOND")
RATE_BURST = int(environment.number("RATE_BURST"))
# The sweeper needs two at a time.
POOL_SIZE = max(2, int(environment.number("POOL_SIZE")))
