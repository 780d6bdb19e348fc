//! The same against moto, a server that others wrote.

use std::collections::BTreeMap;

use aws_sdk_glue::Client;
use aws_sdk_glue::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_glue::types::{Column, DatabaseInput, StorageDescriptor, TableInput};
use delta_migrate::ErrorCode;
use delta_migrate::catalog::GlueOptions;

use super::{all, uris};

const SERVER: &str = "DELTA_MIGRATE_TEST_GLUE";

async fn make(client: &Client, database: &str, name: &str, key: &str, value: &str) {
    let column = Column::builder().name("id").r#type("bigint").build().unwrap();
    let storage =
        StorageDescriptor::builder().columns(column).location(format!("s3a://lake/{database}/{name}"));
    let table = TableInput::builder().name(name).storage_descriptor(storage.build()).parameters(key, value);
    let request = client.create_table().database_name(database).table_input(table.build().unwrap());
    request.send().await.unwrap();
}

#[tokio::test]
async fn tables_of_a_catalog_on_moto() {
    let Ok(url) = std::env::var(SERVER) else {
        println!("SKIPPED: {SERVER} is not set to the URL of a moto server");
        return;
    };
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(Credentials::new("AKIDMOTO", "secret", None, None, "test"))
        .endpoint_url(&url)
        .build();
    let client = Client::from_conf(config);
    let id = std::process::id();
    let (sales, other) = (format!("sales{id}"), format!("other{id}"));
    for database in [&sales, &other] {
        let input = DatabaseInput::builder().name(database).build().unwrap();
        client.create_database().database_input(input).send().await.unwrap();
        make(&client, database, "facts", "spark.sql.sources.provider", "delta").await;
        make(&client, database, "plain", "classification", "parquet").await;
    }
    let storage =
        [("aws_access_key_id", "AKIDMOTO"), ("aws_secret_access_key", "secret"), ("region", "eu-central-1")];
    let storage: BTreeMap<String, String> = storage.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let options = |tables: &[String]| {
        let mut options = GlueOptions::default();
        options.tables = tables.to_vec();
        options.storage = storage.clone();
        options.endpoint = Some(url.clone());
        options
    };
    let both = [format!("s3://lake/{other}/facts"), format!("s3://lake/{sales}/facts")];
    let (found, errors) = all(options(&[format!("*{id}.*")])).await;
    assert_eq!((uris(&found), errors.len()), (both.iter().map(String::as_str).collect(), 0), "{errors:?}");
    assert_eq!(found[0].columns.as_deref().unwrap(), ["id"]);
    let (found, errors) = all(options(&[format!("{sales}.facts"), format!("{sales}.gone")])).await;
    assert_eq!(uris(&found), [both[1].as_str()]);
    assert_eq!((errors.len(), errors[0].code()), (1, ErrorCode::Missing), "{errors:?}");
    let (found, errors) = all(options(&[format!("gone{id}.*")])).await;
    assert_eq!((found.len(), errors.len()), (0, 1));
    assert_eq!(errors[0].code(), ErrorCode::Usage, "{errors:?}");
    for database in [&sales, &other] {
        client.delete_database().name(database).send().await.unwrap();
    }
}
