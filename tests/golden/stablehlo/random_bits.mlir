module @random_bits attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>) {
    %0, %1 = "stablehlo.rng_bit_generator"(%arg0) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>)
    "func.return"(%0, %1) : (tensor<2xui64>, tensor<2xui32>) -> ()
  }
}
